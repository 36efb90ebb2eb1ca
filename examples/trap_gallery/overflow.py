"""exp without the row's maximum taken off: inf / inf is NaN."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        e = torch.exp(x.float())
        y = (e / e.sum(-1, keepdim=True)).to(x.dtype)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return y * (dy - (y * dy).sum(-1, keepdim=True))


def reference(x):
    return torch.softmax(x, -1)


# %% wrong
torch.manual_seed(0)
x = torch.randn(4, 12, device=device).requires_grad_()
for scale in (1, 64):
    y = Broken.apply(scale * x)
    print(f"x times {scale}: NaN in {int(y.isnan().any(-1).sum())} of 4 rows")

# %% proof
report = prove(Broken.apply, (x,), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def forward(ctx, x):
        top = x.float().amax(-1, keepdim=True) if x.numel() else 0
        e = torch.exp(x.float() - top)
        y = (e / e.sum(-1, keepdim=True)).to(x.dtype)
        ctx.save_for_backward(y)
        return y


mended = prove(Mended.apply, (x,), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
