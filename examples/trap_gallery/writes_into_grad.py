"""backward adds to w.grad by hand and autograd knows nothing of it."""

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
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, w = ctx.saved_tensors
        dw = (x * dy).sum()
        w.grad = dw if w.grad is None else w.grad + dw
        return w * dy, dw


def reference(x, w):
    return w * x


# %% wrong
torch.manual_seed(0)
x = torch.randn(100, device=device).requires_grad_()
w = torch.tensor(1.5, device=device, requires_grad=True)

Broken.apply(x, w).sum().backward()
print(f"w.grad is {float(w.grad / x.detach().sum()):.2f} times the sum")
w.grad = x.grad = None

# %% proof
report = prove(Broken.apply, (x, w), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, w = ctx.saved_tensors
        return w * dy, (x * dy).sum()


mended = prove(Mended.apply, (x, w), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, w))}")
print(f"opcheck: {opcheck(Broken.apply, (x, w))}")
