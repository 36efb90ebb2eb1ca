"""The same launch inside a torch.autograd.Function is a node that gradients pass through."""

# %% setup
import math

import torch

from gradkernels.gelu import gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% function
class TritonGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        return gelu_forward(x)

    @staticmethod
    def backward(ctx, dy):
        # Torch arithmetic for now: this lesson is about the wiring, lesson 2 writes the kernel.
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return dy * (cdf + x * pdf)


# %% apply
x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)
y = TritonGELU.apply(x)
print("y.requires_grad:", y.requires_grad)
print("y.grad_fn:", y.grad_fn)

# %% gradient
y.sum().backward()
print("x.grad:", x.grad)

# %% reference
x_torch = x.detach().clone().requires_grad_()
y_torch = torch.nn.functional.gelu(x_torch)
y_torch.sum().backward()
print("torch's x.grad:", x_torch.grad)
print("same forward:", torch.allclose(y, y_torch, atol=1e-6))
print("same gradient:", torch.allclose(x.grad, x_torch.grad, atol=1e-6))

# %% walk
node = y.sum().grad_fn
while node is not None:
    print(node.name())
    node = node.next_functions[0][0] if node.next_functions else None

# %% not-recorded
print("input without requires_grad:", TritonGELU.apply(x.detach()).grad_fn)
with torch.no_grad():
    print("under no_grad:", TritonGELU.apply(x).grad_fn)


# %% several
class ScaledPower(torch.autograd.Function):
    """y = w xᵖ, of two tensors and an integer."""

    @staticmethod
    def forward(ctx, x, w, p):
        ctx.save_for_backward(x, w)
        ctx.p = p
        return w * x**p

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx = dy * w * ctx.p * x ** (ctx.p - 1)
        dw = dy * x**ctx.p
        return dx, dw, None


x = torch.tensor([3.0], device=device, requires_grad=True)
w = torch.tensor([5.0], device=device, requires_grad=True)
ScaledPower.apply(x, w, 2).sum().backward()
print("dx:", x.grad.item())
print("dw:", w.grad.item())
