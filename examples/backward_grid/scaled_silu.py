"""y = w · x · sigmoid(x), end to end: two kernels, two launchers, one node."""

# %% forward-kernel
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"
BLOCK_SIZE = 1024


@triton.jit
def scaled_silu_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr).to(tl.float32)
    y = w * x * tl.sigmoid(x)
    tl.store(y_ptr + offsets, y, mask=mask)


# %% forward
def scaled_silu_forward(x, w):
    y = torch.empty_like(x)
    n = x.numel()
    scaled_silu_kernel[(triton.cdiv(n, BLOCK_SIZE),)](x, w, y, n, BLOCK=BLOCK_SIZE)
    return y


torch.manual_seed(0)
x = torch.randn(5000, device=device)
w = torch.tensor(1.5, device=device)
expected = w * torch.nn.functional.silu(x)
print(f"y equals torch's w · silu(x): {torch.allclose(scaled_silu_forward(x, w), expected)}")


# %% backward-kernel
@triton.jit
def scaled_silu_backward_kernel(dy_ptr, x_ptr, w_ptr, dx_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr).to(tl.float32)
    s = tl.sigmoid(x)
    dx = dy * w * (s + x * s * (1 - s))
    tl.store(dx_ptr + offsets, dx, mask=mask)
    tl.atomic_add(dw_ptr, tl.sum(dy * x * s, axis=0))


# %% backward
def scaled_silu_backward(dy, x, w):
    dx = torch.empty_like(x)
    dw = torch.zeros((), device=x.device, dtype=torch.float32)
    n = x.numel()
    scaled_silu_backward_kernel[(triton.cdiv(n, BLOCK_SIZE),)](
        dy, x, w, dx, dw, n, BLOCK=BLOCK_SIZE
    )
    return dx, dw.to(w.dtype).view(w.shape)


dx, dw = scaled_silu_backward(torch.ones_like(x), x, w)
print(f"dx: {tuple(dx.shape)}, as many as x")
print(f"dw: {tuple(dw.shape)}, one number")


# %% function
class ScaledSiLU(torch.autograd.Function):
    @staticmethod
    def forward(x, w, inplace=False):
        return scaled_silu_forward(x.contiguous(), w)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, _inplace = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx, dw = scaled_silu_backward(dy.contiguous(), x.contiguous(), w)
        return dx, dw, None  # one value for each argument of forward, in its order


def scaled_silu(x, w):
    return ScaledSiLU.apply(x, w, False)


# %% gradients
x.requires_grad_()
w.requires_grad_()
y = scaled_silu(x, w)
dy = torch.randn_like(y)
y.backward(dy)

x64 = x.detach().double().requires_grad_()
w64 = w.detach().double().requires_grad_()
(w64 * torch.nn.functional.silu(x64)).backward(dy.double())
print(f"grad_fn: {y.grad_fn.name()}")
print(f"dx agrees with torch's in fp64: {torch.allclose(x.grad.double(), x64.grad, atol=1e-5)}")
print(f"dw agrees with torch's in fp64: {torch.allclose(w.grad.double(), w64.grad, atol=1e-3)}")
