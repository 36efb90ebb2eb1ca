"""The loss leaves ignored targets out, and their rows get a gradient all the same."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(logits, target)
        return F.cross_entropy(logits, target, reduction="sum")

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        logits, target = ctx.saved_tensors
        rows = torch.arange(len(target), device=target.device)
        dx = torch.softmax(logits.float(), -1)
        dx[rows, target.clamp_min(0)] -= 1
        return (dx * dy).to(logits.dtype), None


def reference(logits, target):
    return F.cross_entropy(logits, target, reduction="sum")


# %% wrong
torch.manual_seed(0)
logits = torch.randn(6, 10, device=device).requires_grad_()
target = torch.tensor([3, 1, 9, 0, 5, 7], device=device)

padded = torch.tensor([3, 1, -100, 0, -100, 7], device=device)
(dx,) = torch.autograd.grad(Broken.apply(logits, padded), logits)
print(f"ignored rows with a gradient: {int((dx[padded < 0] != 0).any(-1).sum())} of 2")

# %% proof
report = prove(Broken.apply, (logits, target), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        dx, _ = Broken.backward(ctx, dy)
        ignored = ctx.saved_tensors[1] < 0
        return dx.masked_fill(ignored[:, None], 0), None


mended = prove(Mended.apply, (logits, target), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (logits, target))}")
print(f"opcheck: {opcheck(Broken.apply, (logits, target))}")
