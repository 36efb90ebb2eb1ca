"""A row of masks alone: −inf minus −inf is NaN before anything could be masked away."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores):
        top = scores.float().amax(-1, keepdim=True) if scores.numel() else scores.float()
        e = torch.exp(scores.float() - top)
        p = e / e.sum(-1, keepdim=True)
        ctx.save_for_backward(p)
        return p.to(scores.dtype)

    @staticmethod
    def backward(ctx, dy):
        (p,) = ctx.saved_tensors
        return (p * (dy - (p * dy).sum(-1, keepdim=True))).to(dy.dtype)


def reference(scores):
    visible = torch.isfinite(scores)
    p = torch.softmax(torch.where(visible, scores, torch.finfo(scores.dtype).min), -1)
    return torch.where(visible, p, 0)


# %% wrong
torch.manual_seed(0)
scores = torch.randn(4, 6, device=device).requires_grad_()
with torch.no_grad():
    tile = scores.clone()
    tile[1] = -torch.inf
p = Broken.apply(tile.requires_grad_())
print(f"rows with NaN: {int(p.isnan().any(-1).sum())} of 4")

# %% proof
report = prove(Broken.apply, (scores,), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def forward(ctx, scores):
        top = scores.float().amax(-1, keepdim=True) if scores.numel() else scores.float()
        e = torch.exp(scores.float() - torch.where(torch.isfinite(top), top, 0))
        p = e / e.sum(-1, keepdim=True).clamp_min(torch.finfo(torch.float32).tiny)
        ctx.save_for_backward(p)
        return p.to(scores.dtype)


mended = prove(Mended.apply, (scores,), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (scores,))}")
print(f"opcheck: {opcheck(Broken.apply, (scores,))}")
