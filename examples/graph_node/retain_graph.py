# needs: torch
"""What `retain_graph=True` keeps, and for how long."""

# %% two-backwards
import weakref

import torch


class SafeSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy


x = torch.tensor([3.0], requires_grad=True)
h = x.clone()
alive = weakref.ref(h)
y = SafeSquare.apply(h)
del h
for retain in (True, False):
    y.backward(retain_graph=retain)
    kept = alive() is not None
    print(f"retain_graph={retain}: x.grad {x.grad.item()}, saved tensor kept: {kept}")
