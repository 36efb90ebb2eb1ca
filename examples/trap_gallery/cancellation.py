"""The variance as E[x²] − E[x]²: two large numbers, and the answer is what rounding leaves."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mean = x.float().mean(-1, keepdim=True)
        variance = x.float().square().mean(-1, keepdim=True) - mean.square()
        rstd = torch.rsqrt(variance.clamp_min(0) + 1e-5)
        ctx.save_for_backward(x, mean, rstd)
        return ((x.float() - mean) * rstd).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, mean, rstd = ctx.saved_tensors
        hat = (x.float() - mean) * rstd
        dy = dy.float()
        row = dy.mean(-1, keepdim=True) + hat * (dy * hat).mean(-1, keepdim=True)
        return (rstd * (dy - row)).to(x.dtype)


def reference(x):
    return F.layer_norm(x, x.shape[-1:])


# %% wrong
torch.manual_seed(0)
x = torch.randn(4, 64, device=device).requires_grad_()
for offset in (0, 1000):
    y = Broken.apply(x + offset)
    spread = [f"{value:.1f}" for value in y.detach().std(-1, correction=0).tolist()]
    print(f"mean near {offset}: every row has a spread of 1: {set(spread) == {'1.0'}}")

# %% proof
report = prove(Broken.apply, (x,), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def forward(ctx, x):
        mean = x.float().mean(-1, keepdim=True)
        rstd = torch.rsqrt((x.float() - mean).square().mean(-1, keepdim=True) + 1e-5)
        ctx.save_for_backward(x, mean, rstd)
        return ((x.float() - mean) * rstd).to(x.dtype)


mended = prove(Mended.apply, (x,), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
