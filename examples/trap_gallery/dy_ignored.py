"""The gradient of .sum() is right without dy, since there dy is 1."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        return F.silu(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return s * (1 + x * (1 - s))


# %% wrong
x = torch.linspace(-2, 2, 12, device=device).requires_grad_()
for label, loss in (("sum", torch.Tensor.sum), ("mean", torch.Tensor.mean)):
    (dx,) = torch.autograd.grad(loss(Broken.apply(x)), x)
    (expected,) = torch.autograd.grad(loss(F.silu(x)), x)
    print(f"{label}: right is {torch.allclose(dx, expected, atol=1e-5)}")

# %% proof
report = prove(Broken.apply, (x,), reference=F.silu)
print(report)


# %% mended
class Mended(Broken):
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
