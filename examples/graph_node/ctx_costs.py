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
        ctx.save_for_backward(x)
        return torch.exp(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return torch.exp(x) * dy


class Attribute(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return torch.exp(x)

    @staticmethod
    def backward(ctx, dy):
        return torch.exp(ctx.x) * dy


def leaf():
    return torch.tensor([1.0], requires_grad=True)


# %% after-backward
for function in (Saved, Attribute):
    x = leaf().clone()
    alive = weakref.ref(x)
    y = function.apply(x)
    del x
    print(f"{function.__name__}: input alive before backward: {alive() is not None}")
    y.backward()
    print(f"{function.__name__}: input alive after backward: {alive() is not None}")
    del y
    print(f"{function.__name__}: input alive without output: {alive() is not None}")

# %% second-backward
x = leaf()
y = Attribute.apply(x)
y.backward()
once = x.grad.clone()
y.backward()
print("Attribute: x.grad after two, over x.grad after one:", (x.grad / once).item())

y = Saved.apply(x)
y.backward()
try:
    y.backward()
except RuntimeError as error:
    print(f"Saved: RuntimeError: {str(error).split('(')[0]}")
else:
    raise AssertionError("the graph was still there for a second backward")


# %% cycle
class SavedOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return y * dy


class AttributeOutput(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = torch.exp(x)
        return ctx.y

    @staticmethod
    def backward(ctx, dy):
        return ctx.y * dy


gc.disable()  # the collector runs when it likes: here, only when asked
for function in (SavedOutput, AttributeOutput):
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
