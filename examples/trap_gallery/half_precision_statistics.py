"""Mean and rstd are kept in bf16: one number a row, and it spoils the row."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        mean = x.mean(-1, keepdim=True)
        rstd = torch.rsqrt((x - mean).square().mean(-1, keepdim=True) + 1e-5)
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
    wide = torch.promote_types(x.dtype, torch.float32)
    return F.layer_norm(x.to(wide), x.shape[-1:])


# %% wrong
torch.manual_seed(0)
x = torch.randn(4, 64, device=device).to(torch.bfloat16).requires_grad_()
for offset in (0, 200):
    leaf = (x.detach() + offset).requires_grad_()
    exact = leaf.detach().double().requires_grad_()
    upstream = torch.randn(4, 64, device=device).to(torch.bfloat16)
    (dx,) = torch.autograd.grad(Broken.apply(leaf), leaf, upstream)
    (expected,) = torch.autograd.grad(reference(exact), exact, upstream.double())
    error = float((dx.double() - expected).abs().max() / expected.abs().max())
    print(f"mean near {offset}: dx is off by less than 1 %: {error < 0.01}")

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
