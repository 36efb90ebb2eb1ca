"""A square weight hides that dW = XᵀdY is the transpose of what nn.Linear's layout wants."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy = dy.to(x.dtype)
        return dy @ weight, x.t() @ dy


# %% wrong
torch.manual_seed(0)
x = torch.randn(5, 6, device=device, requires_grad=True)
weight = torch.randn(6, 6, device=device, requires_grad=True)
got = torch.autograd.grad(Broken.apply(x, weight).sum(), weight)[0]
expected = torch.autograd.grad(F.linear(x, weight).sum(), weight)[0]
print(f"dW is right: {torch.allclose(got, expected)}; dWᵀ is: {torch.allclose(got.t(), expected)}")

# %% proof
report = prove(Broken.apply, (x, weight), reference=F.linear)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy = dy.to(x.dtype)
        return dy @ weight, dy.t() @ x


mended = prove(Mended.apply, (x, weight), reference=F.linear)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, weight))}")
print(f"opcheck: {opcheck(Broken.apply, (x, weight))}")
