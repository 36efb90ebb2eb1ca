"""The backward divides by the number of elements, and an empty batch has none."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, target):
        ctx.save_for_backward(x, target)
        return (x - target).square().mean(-1)

    @staticmethod
    def backward(ctx, dy):
        x, target = ctx.saved_tensors
        per_row = x.numel() // (x.numel() // x.shape[-1])
        dx = 2 / per_row * (x - target) * dy[..., None]
        return dx, -dx


def reference(x, target):
    return (x - target).square().mean(-1)


# %% wrong
x = torch.randn(4, 6, device=device)
target = torch.randn(4, 6, device=device)
none = torch.empty(0, 6, device=device, requires_grad=True)
try:
    Broken.apply(none, none.detach()).sum().backward()
except ZeroDivisionError as error:
    print(f"ZeroDivisionError: {error}")
else:
    raise AssertionError("an empty batch went through")

# %% proof
report = prove(Broken.apply, (x, target), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        x, target = ctx.saved_tensors
        dx = 2 / max(x.shape[-1], 1) * (x - target) * dy[..., None]
        return dx, -dx


mended = prove(Mended.apply, (x, target), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, target))}")
print(f"opcheck: {opcheck(Broken.apply, (x, target))}")
