"""The last input is kept on the class, so the backward of an earlier call sees a later one's."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Broken.x = x.detach()
        return F.silu(x)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        s = torch.sigmoid(Broken.x)
        return dy * s * (1 + Broken.x * (1 - s))


# %% wrong
x = torch.linspace(-2, 2, 12, device=device).requires_grad_()
first = Broken.apply(x)
second = Broken.apply(torch.zeros_like(x))
(dx,) = torch.autograd.grad(first.sum(), x)
print(f"dx is the gradient at the second call's zeros: {bool((dx == 0.5).all())}")

# %% proof
report = prove(Broken.apply, (x,), reference=F.silu)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.silu(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy * s * (1 + x * (1 - s))


mended = prove(Mended.apply, (x,), reference=F.silu)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
