"""dw comes back with one entry for each element of x, and autograd sums it without a word."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * x

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return w * dy, x * dy


def reference(x, w):
    return w * x


# %% wrong
torch.manual_seed(0)
x = torch.randn(100, device=device).requires_grad_()
w = torch.tensor(1.5, device=device, requires_grad=True)

Broken.apply(x, w).sum().backward()
print(f"dw, summed by autograd, is right: {torch.allclose(w.grad, x.sum(), rtol=1e-4)}")
print(f"memory it took: {x.numel()} numbers instead of 1")

# %% proof
report = prove(Broken.apply, (x, w), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return w * dy, (x * dy).sum()


mended = prove(Mended.apply, (x, w), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, w))}")
print(f"opcheck: {opcheck(Broken.apply, (x, w))}")
