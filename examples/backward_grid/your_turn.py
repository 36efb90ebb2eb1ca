"""The exercise, y = w · exp(−x²): a check to pass, a right node and three wrong ones."""

# %% check
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


def check(bump):
    """Say whether bump(x, w) computes w · exp(−x²) and its gradients, in fp32 and in bf16."""
    torch.manual_seed(0)
    for dtype, shape, arranged in (
        (torch.float32, (), transposed),
        (torch.float32, (), sliced),
        (torch.bfloat16, (1,), transposed),
    ):
        x = arranged(dtype).requires_grad_()
        w = torch.full(shape, 1.5, device=device, dtype=dtype, requires_grad=True)
        x64, w64 = (t.detach().double().requires_grad_() for t in (x, w))
        y, y64 = bump(x, w), w64 * torch.exp(-(x64**2))
        case = f"{dtype}, w of shape {shape}, x {arranged.__name__}"
        print(f"{case}: y right: {close(y, y64)}")
        dense = transposed(dtype)
        for name, dy in (("dense dy", dense), ("dy of stride 0", dense[:1, :1].expand_as(x))):
            dx, dw = torch.autograd.grad(y, (x, w), dy, retain_graph=True)
            dx64, dw64 = torch.autograd.grad(y64, (x64, w64), dy.double(), retain_graph=True)
            print(f"  {name}: dx right: {close(dx, dx64)}, dw right: {close(dw, dw64)}")


def transposed(dtype):
    return torch.randn(37, 111).to(device, dtype).t()


def sliced(dtype):
    return torch.randn(111, 74).to(device, dtype)[:, ::2]


def close(actual, exact):
    """Within one rounding to its dtype, and what summing in fp32 may lose."""
    rtol = torch.finfo(actual.dtype).eps + 1e-4
    return torch.allclose(actual.double(), exact, rtol=rtol, atol=1e-4)


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
        return dx, partials.sum().to(w.dtype).view(w.shape)


check(Bump.apply)


# %% gaps
class WalksOverGaps(Bump):
    @staticmethod
    def forward(x, w):
        y = torch.empty_like(x)  # of x's strides, if x has no gaps
        n = x.numel()
        bump_kernel[(triton.cdiv(n, 256),)](x, w, y, n, BLOCK=256)
        return y


check(WalksOverGaps.apply)


# %% forgotten-minus
class ForgetsTheMinus(Bump):
    @staticmethod
    def backward(ctx, dy):
        dx, dw = Bump.backward(ctx, dy)
        return -dx, dw


check(ForgetsTheMinus.apply)


# %% thrown-away-copy
class ThrowsTheSumAway(Bump):
    @staticmethod
    def backward(ctx, dy):
        dx, total = Bump.backward(ctx, dy)
        dw = torch.zeros_like(total)
        dw.float().add_(total)  # dw itself only while it is fp32, else a copy
        return dx, dw


check(ThrowsTheSumAway.apply)
