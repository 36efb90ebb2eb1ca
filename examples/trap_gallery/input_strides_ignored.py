"""empty_like keeps the strides of a transposed x; the kernel writes as if there were none."""
# time limit: 300 s

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
        ctx.save_for_backward(x)
        return F.silu(x)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        (x,) = ctx.saved_tensors
        x, dy, dx = x.contiguous(), dy.contiguous(), torch.empty_like(x)
        silu_backward_kernel[(triton.cdiv(x.numel(), 64),)](x, dy, dx, x.numel(), BLOCK=64)
        return dx


# %% wrong
x = torch.linspace(-2, 2, 12, device=device).view(4, 3)
for op in (Broken.apply, F.silu):
    leaf = x.t().detach().requires_grad_()
    (dx,) = torch.autograd.grad(op(leaf).sum(), leaf)
    print([round(value, 3) for value in dx[1].tolist()])

# %% proof
report = prove(Broken.apply, (x,), reference=F.silu)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def forward(ctx, x):
        return Broken.forward(ctx, x.contiguous())


mended = prove(Mended.apply, (x,), reference=F.silu)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
