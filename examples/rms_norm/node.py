"""The graph node of RMSNorm: what it saves, what it makes contiguous, and what happens if not."""

# %% kernels
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"
EPS = 1e-6


@triton.jit
def forward_kernel(x_ptr, w_ptr, y_ptr, rstd_ptr, d, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < d
    x = tl.load(x_ptr + row * d + columns, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / d + eps)
    tl.store(y_ptr + row * d + columns, w * x * rstd, mask=mask)
    tl.store(rstd_ptr + row, rstd)


@triton.jit
def backward_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, partials_ptr, rows, d, BLOCK: tl.constexpr
):
    columns = tl.arange(0, BLOCK)
    mask = columns < d
    w = tl.load(w_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        dy = tl.load(dy_ptr + row * d + columns, mask=mask, other=0.0).to(tl.float32)
        x = tl.load(x_ptr + row * d + columns, mask=mask, other=0.0).to(tl.float32)
        rstd = tl.load(rstd_ptr + row)
        x_hat = x * rstd
        dx = rstd * (w * dy - x_hat * tl.sum(w * dy * x_hat, axis=0) / d)
        tl.store(dx_ptr + row * d + columns, dx, mask=mask)
        total += dy * x_hat
    tl.store(partials_ptr + tl.program_id(0) * d + columns, total, mask=mask)


# %% launchers
def launch_forward(x, w):
    rows, d = x.shape
    y = torch.empty(rows, d, device=x.device, dtype=x.dtype)
    rstd = torch.empty(rows, device=x.device)
    forward_kernel[(rows,)](x, w, y, rstd, d, EPS, BLOCK=triton.next_power_of_2(d))
    return y, rstd


def launch_backward(dy, x, w, rstd, programs=4):
    rows, d = x.shape
    dx = torch.empty(rows, d, device=x.device, dtype=x.dtype)
    partials = torch.empty(programs, d, device=x.device)
    backward_kernel[(programs,)](
        dy, x, w, rstd, dx, partials, rows, d, BLOCK=triton.next_power_of_2(d)
    )
    return dx, partials.sum(dim=0).to(w.dtype)


# %% node
class RMSNorm(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        return launch_forward(x.contiguous(), w.contiguous())

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w = inputs
        _, rstd = output
        ctx.mark_non_differentiable(rstd)
        ctx.save_for_backward(x, w, rstd)

    @staticmethod
    def backward(ctx, dy, _drstd):
        x, w, rstd = ctx.saved_tensors
        return launch_backward(dy.contiguous(), x.contiguous(), w.contiguous(), rstd)


def rms_norm(x, w):
    y, _ = RMSNorm.apply(x, w)
    return y


# %% right
def gradients(norm, x, w, dy):
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    return torch.autograd.grad(norm(x, w), (x, w), dy)


def torchs_rms_norm(x, w):
    return torch.nn.functional.rms_norm(x, w.shape, w, EPS)


def close(a, b):
    return torch.allclose(a, b, rtol=1e-4, atol=1e-5)


torch.manual_seed(0)
x = torch.randn(50, 6, device=device).t()
w = torch.randn(50, device=device)
# One number for all, as sum() hands it over, but with others behind it: there is room to misread.
dy = torch.arange(1.0, 301.0, device=device)[0].expand(6, 50)
(dx, dw), (right_dx, right_dw) = (gradients(norm, x, w, dy) for norm in (rms_norm, torchs_rms_norm))
print(f"strides: x {x.stride()}, dy {dy.stride()}")
print(f"y right: {close(rms_norm(x, w), torchs_rms_norm(x, w))}")
print(f"dx right: {close(dx, right_dx)}, dw right: {close(dw, right_dw)}")

# %% not-contiguous
y, rstd = launch_forward(x, w)
print(f"x as it is: y right: {close(y, torchs_rms_norm(x, w))}")
y, rstd = launch_forward(x.contiguous(), w)
dx, dw = launch_backward(dy, x.contiguous(), w, rstd)
print(f"dy as it is: dx right: {close(dx, right_dx)}, dw right: {close(dw, right_dw)}")
