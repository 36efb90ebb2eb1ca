"""A kernel's output is a fresh tensor: without a Function autograd never hears of it."""

# %% broken
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def silu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + offsets, x * tl.sigmoid(x), mask=mask)


def broken(x):
    x = x.contiguous()
    y = torch.empty_like(x)
    silu_kernel[(triton.cdiv(x.numel(), 64),)](x, y, x.numel(), BLOCK=64)
    return y


# %% wrong
x = torch.linspace(-2, 2, 12, device=device).requires_grad_()
print(f"the output requires a gradient: {broken(x).requires_grad}")
w = torch.ones((), device=device, requires_grad=True)
(w * broken(x)).sum().backward()  # another leaf hides it: no error anywhere
print(f"x.grad: {x.grad}")

# %% proof
report = prove(broken, (x,), reference=F.silu)
print(report)


# %% mended
class SiLU(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return broken(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy * s * (1 + x * (1 - s))


mended = prove(SiLU.apply, (x,), reference=F.silu)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(broken, (x,))}")
print(f"opcheck: {opcheck(broken, (x,))}")
