"""dx is written over dy to save memory, and another branch of the graph reads that dy."""

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
        dx = dy = dy.contiguous()
        silu_backward_kernel[(triton.cdiv(x.numel(), 64),)](x, dy, dx, x.numel(), BLOCK=64)
        return dx


# %% wrong
x = torch.linspace(-2, 2, 12, device=device).requires_grad_()
z = torch.zeros(12, device=device, requires_grad=True)
branch = 1 * z
(branch + Broken.apply(x)).backward(torch.ones(12, device=device))
print(f"dz should be all ones: {[round(value, 3) for value in z.grad.tolist()[:4]]} …")

# %% proof
report = prove(Broken.apply, (x,), reference=F.silu)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        return Broken.backward(ctx, dy.clone(memory_format=torch.contiguous_format))


mended = prove(Mended.apply, (x,), reference=F.silu)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
