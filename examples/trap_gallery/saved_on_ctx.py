"""ctx.x = x skips the version check, and holds x long after backward."""

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
        ctx.x = x.contiguous()
        return F.silu(ctx.x)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, dy = ctx.x, dy.contiguous()
        dx = torch.empty_like(x)
        silu_backward_kernel[(triton.cdiv(x.numel(), 64),)](x, dy, dx, x.numel(), BLOCK=64)
        return dx


# %% wrong
x = torch.linspace(-2, 2, 12, device=device).requires_grad_()
leaf = x.detach().clone().requires_grad_()
y = Broken.apply(leaf)
with torch.no_grad():
    leaf.zero_()  # after the forward, before the backward: nobody objects
y.sum().backward()
print(f"dx is the gradient at 0: {torch.allclose(leaf.grad, torch.full_like(leaf, 0.5))}")

# %% proof
report = prove(Broken.apply, (x,), reference=F.silu)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        return F.silu(x)

    @staticmethod
    def backward(ctx, dy):
        (ctx.x,) = ctx.saved_tensors
        try:
            return Broken.backward(ctx, dy)
        finally:
            del ctx.x


mended = prove(Mended.apply, (x,), reference=F.silu)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
