# needs: torch
"""What a tensor kept as a ctx attribute costs, beyond the version check."""

# %% setup
import gc
import weakref

import torch
from torch.utils.checkpoint import checkpoint


class Saved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(x, y)
        return y

    @staticmethod
    def backward(ctx, dy):
        _, y = ctx.saved_tensors
        return y * dy


class Attribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.x, ctx.y = x, y
        return y

    @staticmethod
    def backward(ctx, dy):
        return ctx.y * dy


def leaf():
    return torch.tensor([1.0], requires_grad=True)


# %% after-backward
for function in (Saved, Attribute):
    x = leaf().clone()
    alive = weakref.ref(x)
    y = function.apply(x)
    del x
    y.backward()
    print(f"{function.__name__}: input alive after backward: {alive() is not None}")

# %% second-backward
x = leaf()
y = Attribute.apply(x)
y.backward()
y.backward()
print("x.grad in units of dy/dx:", (x.grad / y).item())

y = Saved.apply(x)
y.backward()
try:
    y.backward()
except RuntimeError as error:
    print(f"RuntimeError: {str(error).split('(')[0]}")
else:
    raise AssertionError("the graph was still there for a second backward")

# %% cycle
gc.disable()  # the collector runs when it likes: here, only when asked
for function in (Saved, Attribute):
    y = function.apply(leaf())
    alive = weakref.ref(y)
    del y
    print(f"{function.__name__}: output alive after del: {alive() is not None}")
    gc.collect()
    print(f"{function.__name__}: output alive after gc: {alive() is not None}")
gc.enable()

# %% hooks
for function in (Saved, Attribute):
    packed = []

    def pack(tensor, packed=packed):
        packed.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        function.apply(leaf())
    print(f"{function.__name__}: tensors seen by the hooks: {len(packed)}")

# %% checkpoint
for function in (Saved, Attribute):
    inputs = []

    def block(x, function=function, inputs=inputs):
        h = x.clone()
        inputs.append(weakref.ref(h))
        return function.apply(h)

    y = checkpoint(block, leaf(), use_reentrant=False)
    print(f"{function.__name__}: activation alive after forward: {inputs[0]() is not None}")
    y.backward()
    print(f"{function.__name__}: times forward ran: {len(inputs)}")
