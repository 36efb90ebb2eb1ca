"""The exercise, y = w · exp(−x²): a check to pass, one wrong backward, one right one."""

# %% check
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


def check(bump):
    """Say what is wrong with bump(x, w), which should compute w · exp(−x²)."""
    torch.manual_seed(0)
    x = torch.randn(37, 111, device=device).t().requires_grad_()
    w = torch.tensor(1.5, device=device, requires_grad=True)
    x64 = x.detach().double().requires_grad_()
    w64 = w.detach().double().requires_grad_()
    y, y64 = bump(x, w), w64 * torch.exp(-(x64**2))
    print(f"y right: {torch.allclose(y.double(), y64, atol=1e-5)}")
    dy = torch.randn(37, 111, device=device).t()
    for name, upstream in (("dense dy", dy), ("dy of stride 0", dy[:1, :1].expand_as(dy))):
        dx, dw = torch.autograd.grad(y, (x, w), upstream, retain_graph=True)
        dx64, dw64 = torch.autograd.grad(y64, (x64, w64), upstream.double(), retain_graph=True)
        print(f"{name}: dx right: {torch.allclose(dx.double(), dx64, atol=1e-5)}", end=", ")
        print(f"dw right: {torch.allclose(dw.double(), dw64, rtol=1e-4, atol=1e-3)}")


# %% kernels
@triton.jit
def bump_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr).to(tl.float32)
    tl.store(y_ptr + offsets, w * tl.exp(-x * x), mask=mask)


@triton.jit
def bump_backward_kernel(dy_ptr, x_ptr, w_ptr, dx_ptr, partials_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr).to(tl.float32)
    e = tl.exp(-x * x)
    tl.store(dx_ptr + offsets, dy * w * -2 * x * e, mask=mask)
    tl.store(partials_ptr + tl.program_id(0), tl.sum(dy * e, axis=0))


# %% node
class Bump(torch.autograd.Function):
    @staticmethod
    def forward(x, w):
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.numel()
        bump_kernel[(triton.cdiv(n, 256),)](x, w, y, n, BLOCK=256)
        return y

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        x, dy = x.contiguous(), dy.contiguous()
        dx = torch.empty_like(x)
        n = x.numel()
        programs = triton.cdiv(n, 256)
        partials = torch.empty(programs, device=x.device, dtype=torch.float32)
        bump_backward_kernel[(programs,)](dy, x, w, dx, partials, n, BLOCK=256)
        return dx, partials.sum().to(w.dtype)


check(Bump.apply)


# %% forgotten-minus
class ForgetsTheMinus(Bump):
    @staticmethod
    def backward(ctx, dy):
        dx, dw = Bump.backward(ctx, dy)
        return -dx, dw


check(ForgetsTheMinus.apply)
