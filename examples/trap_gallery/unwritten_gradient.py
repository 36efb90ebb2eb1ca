"""A grid sized with floor division leaves the last block as it found it."""

# %% broken
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def silu_backward_kernel(x_ptr, dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    s = tl.sigmoid(x)
    tl.store(dx_ptr + offsets, dy * s * (1 + x * (1 - s)), mask=mask)


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        return F.silu(x)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        (x,) = ctx.saved_tensors
        dy = dy.contiguous()
        dx = torch.empty_like(x)
        silu_backward_kernel[(x.numel() // 64,)](x, dy, dx, x.numel(), BLOCK=64)
        return dx


# %% wrong
x = torch.linspace(-2, 2, 100, device=device).requires_grad_()
(expected,) = torch.autograd.grad(F.silu(x).sum(), x)
(dx,) = torch.autograd.grad(Broken.apply(x).sum(), x)
print(f"the first 64 places are right: {torch.allclose(dx[:64], expected[:64], atol=1e-5)}")
print(f"the last 36 places are right: {torch.allclose(dx[64:], expected[64:], atol=1e-5)}")

# %% proof
report = prove(Broken.apply, (x,), reference=F.silu)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        (x,) = ctx.saved_tensors
        dx, dy = torch.empty_like(x), dy.contiguous()
        silu_backward_kernel[(triton.cdiv(x.numel(), 64),)](x, dy, dx, x.numel(), BLOCK=64)
        return dx


mended = prove(Mended.apply, (x,), reference=F.silu)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
