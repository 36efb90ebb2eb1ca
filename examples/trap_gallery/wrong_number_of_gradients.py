"""A flag given to apply wants its None."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, inplace=False):
        ctx.save_for_backward(x, w)
        return w * x

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return w * dy, (x * dy).sum()


def reference(x, w, inplace=False):
    return w * x


# %% wrong
torch.manual_seed(0)
x = torch.randn(100, device=device).requires_grad_()
w = torch.tensor(1.5, device=device, requires_grad=True)

dx, dw = torch.autograd.grad(Broken.apply(x, w).sum(), (x, w))
print(f"without the flag: {type(dx).__name__} and {type(dw).__name__}")
try:
    Broken.apply(x, w, False).sum().backward()
except RuntimeError as error:
    print(f"with the flag: RuntimeError: {error}")
else:
    raise AssertionError("two gradients for three arguments were accepted")

# %% proof
report = prove(Broken.apply, (x, w, False), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        return *Broken.backward(ctx, dy), None


mended = prove(Mended.apply, (x, w, False), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, w, False))}")
print(f"opcheck: {opcheck(Broken.apply, (x, w, False))}")
