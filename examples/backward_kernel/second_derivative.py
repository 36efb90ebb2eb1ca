"""A gradient penalty needs a second derivative, and a kernel has none to give."""

# %% setup
import torch
from torch.autograd.function import once_differentiable

from gradkernels.gelu import gelu, gelu_backward, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"


class GuardedGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return gelu_forward(x)

    @staticmethod
    @once_differentiable
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return gelu_backward(dy, x)


def penalised(function):
    """The gradient of sum(y) + sum((dy/dx)²)."""
    x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)
    y = function(x)
    (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (y.sum() + (slope**2).sum()).backward()
    return x.grad


# %% dy-requires-grad
x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)
dy = torch.ones_like(x, requires_grad=True)
(slope,) = torch.autograd.grad(GuardedGELU.apply(x), x, dy, create_graph=True)
try:
    (slope**2).sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("once_differentiable let a second derivative pass")

# %% lost
print("torch:", penalised(torch.nn.functional.gelu))
print("once_differentiable:", penalised(GuardedGELU.apply))

# %% refused
try:
    penalised(gelu)
except NotImplementedError as error:
    print(f"NotImplementedError: {error}")
else:
    raise AssertionError("a second derivative came out of a kernel that has none")
