"""A missing [:, None]: each row's scale is laid along the columns, where it fits."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(x, scale)
        return x * scale[:, None]

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, scale = ctx.saved_tensors
        rows, columns = x.shape
        along = scale if rows == columns else scale[:, None]  # what broadcasting makes of it
        return dy * along, (x * dy).sum(-1)


def reference(x, scale):
    return x * scale[:, None]


# %% wrong
torch.manual_seed(0)
x = torch.randn(6, 8, device=device)
scale = torch.rand(6, device=device) + 0.5
for columns in (8, 6):
    leaf = x[:, :columns].clone().requires_grad_()
    (dx,) = torch.autograd.grad(Broken.apply(leaf, scale).sum(), leaf)
    (expected,) = torch.autograd.grad(reference(leaf, scale).sum(), leaf)
    print(f"6 rows of {columns}: right is {torch.allclose(dx, expected)}")

# %% proof
report = prove(Broken.apply, (x, scale), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, scale = ctx.saved_tensors
        return dy * scale[:, None], (x * dy).sum(-1)


mended = prove(Mended.apply, (x, scale), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, scale))}")
print(f"opcheck: {opcheck(Broken.apply, (x, scale))}")
