"""forward is an ordinary function: torch operations in it get their own graph, not yours."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class SiLU(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return x * torch.sigmoid(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy * s * (1 + x * (1 - s))


def broken(x):
    return SiLU.forward(x)


# %% wrong
x = torch.linspace(-2, 2, 12, device=device).requires_grad_()
print(f"called by forward: {broken(x).grad_fn.name()}")
print(f"called by apply: {type(SiLU.apply(x).grad_fn).__name__}")

# %% proof
report = prove(broken, (x,), reference=F.silu)
print(report)


# %% mended
def mended_op(x):
    return SiLU.apply(x)


mended = prove(mended_op, (x,), reference=F.silu)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(broken, (x,))}")
print(f"opcheck: {opcheck(broken, (x,))}")
