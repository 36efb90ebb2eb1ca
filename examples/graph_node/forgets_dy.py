# needs: torch
"""A backward that forgets dy agrees with torch as long as the loss is a sum, where dy is ones."""

# %% setup
import math

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% two-backwards
class ForgetsDy(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return torch.nn.functional.gelu(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return cdf + x * pdf


class UsesDy(ForgetsDy):
    @staticmethod
    def backward(ctx, dy):
        return dy * ForgetsDy.backward(ctx, dy)


def agrees(function, dy):
    gradients = []
    for gelu in (function.apply, torch.nn.functional.gelu):
        x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)
        gelu(x).backward(dy)
        gradients.append(x.grad)
    return torch.allclose(*gradients, atol=1e-6)


# %% ones
x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)
y = torch.nn.functional.gelu(x)
(ones,) = torch.autograd.grad(y.sum(), y)
print("dy of y.sum():", ones.tolist())
print("UsesDy agrees:", agrees(UsesDy, ones))
print("ForgetsDy agrees:", agrees(ForgetsDy, ones))

# %% uneven
dy = torch.tensor([3.0, -1.0, 0.5], device=device)
print("UsesDy agrees:", agrees(UsesDy, dy))
print("ForgetsDy agrees:", agrees(ForgetsDy, dy))
