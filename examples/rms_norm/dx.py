"""dx of RMSNorm is not a plain map: every element of a row moves the row's rstd."""

# %% forward-kernel
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"
EPS = 1e-6


@triton.jit
def rms_norm_kernel(x_ptr, w_ptr, y_ptr, rstd_ptr, d, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < d
    x = tl.load(x_ptr + row * d + columns, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / d + eps)
    tl.store(y_ptr + row * d + columns, w * x * rstd, mask=mask)
    tl.store(rstd_ptr + row, rstd)


# %% forward
def rms_norm_forward(x, w):
    rows, d = x.shape
    y = torch.empty_like(x)
    rstd = torch.empty(rows, device=x.device, dtype=torch.float32)
    rms_norm_kernel[(rows,)](x, w, y, rstd, d, EPS, BLOCK=triton.next_power_of_2(d))
    return y, rstd


torch.manual_seed(0)
x = torch.randn(6, 50, device=device)
w = torch.randn(50, device=device)
dy = torch.randn(6, 50, device=device)
y, rstd = rms_norm_forward(x, w)
print(f"y right: {torch.allclose(y, torch.nn.functional.rms_norm(x, (50,), w, EPS), atol=1e-5)}")
print(f"saved for each row: {rstd.numel() // x.shape[0]} number")


# %% backward-kernel
@triton.jit
def rms_norm_dx_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, d, REDUCE: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < d
    dy = tl.load(dy_ptr + row * d + columns, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * d + columns, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    x_hat = x * rstd
    dx = rstd * w * dy
    if REDUCE:
        dx -= rstd * x_hat * tl.sum(w * dy * x_hat, axis=0) / d
    tl.store(dx_ptr + row * d + columns, dx, mask=mask)


def rms_norm_dx(dy, x, w, rstd, reduce):
    rows, d = x.shape
    dx = torch.empty_like(x)
    block = triton.next_power_of_2(d)
    rms_norm_dx_kernel[(rows,)](dy, x, w, rstd, dx, d, REDUCE=reduce, BLOCK=block)
    return dx


x64, w64 = x.double().requires_grad_(), w.double().requires_grad_()
torch.nn.functional.rms_norm(x64, (50,), w64, EPS).backward(dy.double())

# %% without-the-sum
dx = rms_norm_dx(dy, x, w, rstd, reduce=False)
print(f"dx right: {torch.allclose(dx.double(), x64.grad, atol=1e-5)}")

# %% with-the-sum
dx = rms_norm_dx(dy, x, w, rstd, reduce=True)
print(f"dx right: {torch.allclose(dx.double(), x64.grad, atol=1e-5)}")

# %% orthogonal
along_x = (dx * x).sum(dim=1) / (dx.norm(dim=1) * x.norm(dim=1))
print(
    f"cosine between dx and x, largest of 6 rows, below 1e-4: {along_x.abs().max().item() < 1e-4}"
)
