"""dx and dw are returned in the wrong order, which only unequal shapes would betray."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * torch.sigmoid(b)

    @staticmethod
    def backward(ctx, dy):
        a, b = ctx.saved_tensors
        s = torch.sigmoid(b)
        return dy * a * s * (1 - s), dy * s


def reference(a, b):
    return a * torch.sigmoid(b)


# %% wrong
torch.manual_seed(0)
a = torch.randn(4, 6, device=device, requires_grad=True)
b = torch.randn(4, 6, device=device, requires_grad=True)
got = torch.autograd.grad(Broken.apply(a, b).sum(), (a, b))
expected = torch.autograd.grad(reference(a, b).sum(), (a, b))
print(f"da is da: {torch.allclose(got[0], expected[0])}")
print(f"da is db: {torch.allclose(got[0], expected[1])}")

# %% proof
report = prove(Broken.apply, (a, b), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        db, da = Broken.backward(ctx, dy)
        return da, db


mended = prove(Mended.apply, (a, b), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (a, b))}")
print(f"opcheck: {opcheck(Broken.apply, (a, b))}")
