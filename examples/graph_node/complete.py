"""The whole lesson in one program: invisible, then a node, then what saving protects."""

# %% definitions
import math

import torch

from gradkernels.gelu import gelu_forward


class TritonGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        return gelu_forward(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return dy * (cdf + x * pdf)


class SafeSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy


class UnsafeSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, dy):
        return 2 * ctx.x * dy


device = "cuda" if torch.cuda.is_available() else "cpu"


def leaf(*values):
    return torch.tensor(values, device=device, requires_grad=True)


def changed_after_forward(square):
    x = leaf(3.0)
    y = square.apply(x)
    with torch.no_grad():
        x.mul_(10)
    return x, y


# %% main
y = gelu_forward(leaf(-1.0, 0.5, 2.0))
print("plain launch, y:", y)
print("plain launch, y.grad_fn:", y.grad_fn)
try:
    y.sum().backward()
except RuntimeError as error:
    print(f"plain launch, RuntimeError: {error}")
else:
    raise AssertionError("a gradient came back through a launch that autograd did not see")

x = leaf(-1.0, 0.5, 2.0)
y = TritonGELU.apply(x)
print("node, y.grad_fn:", y.grad_fn)
y.sum().backward()
x_torch = leaf(-1.0, 0.5, 2.0)
torch.nn.functional.gelu(x_torch).sum().backward()
print("node, x.grad:", x.grad)
print("node, same gradient as torch's GELU:", torch.allclose(x.grad, x_torch.grad, atol=1e-6))

x, y = changed_after_forward(SafeSquare)
try:
    y.sum().backward()
except RuntimeError as error:
    print(f"saved and changed, RuntimeError: {str(error).split(':')[0]}")
else:
    raise AssertionError("backward used a tensor that was changed after it was saved")
x, y = changed_after_forward(UnsafeSquare)
y.sum().backward()
print("kept on ctx and changed, x.grad:", x.grad.item())
