"""The forward saves a base-2 logsumexp and the backward reads it as base e."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        lse = torch.logsumexp(x.float(), -1, keepdim=True)
        ctx.save_for_backward(x, lse)
        return lse.squeeze(-1).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, lse = ctx.saved_tensors
        log2_e = 1.4426950408889634
        p = torch.exp2((x - lse) * log2_e) * log2_e
        return (p * dy[..., None]).to(x.dtype)


def reference(x):
    return torch.logsumexp(x, -1)


# %% wrong
torch.manual_seed(0)
x = torch.randn(4, 12, device=device).requires_grad_()

(dx,) = torch.autograd.grad(Broken.apply(x).sum(), x)
print(f"the probabilities of a row add up to {float(dx[0].sum()):.4f}")

# %% proof
report = prove(Broken.apply, (x,), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, lse = ctx.saved_tensors
        return (torch.exp(x - lse) * dy[..., None]).to(x.dtype)


mended = prove(Mended.apply, (x,), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
