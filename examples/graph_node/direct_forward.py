"""Calling forward instead of apply: what really happens in both styles of Function."""

# %% setup
import torch

from gradkernels.gelu import gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)


# %% ctx-style
class TwoMethods(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return gelu_forward(x)

    @staticmethod
    def backward(ctx, dy):
        raise NotImplementedError("nothing below calls it")


try:
    TwoMethods.forward(x)
except TypeError as error:
    print(f"TypeError: {error}")
else:
    raise AssertionError("forward ran without its ctx")


# %% setup-context-style
class ThreeMethods(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return gelu_forward(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        raise NotImplementedError("nothing below calls it")


applied = ThreeMethods.apply(x)
direct = ThreeMethods.forward(x)
print("apply's values:", [round(value, 4) for value in applied.tolist()])
print("forward's values:", [round(value, 4) for value in direct.tolist()])
print("apply's grad_fn:", applied.grad_fn.name())
print("forward's grad_fn:", direct.grad_fn)

# %% no-way-back
try:
    direct.sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("a gradient came back from forward called directly")


# %% round
class StraightThroughRound(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return torch.round(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, dy):
        return dy


# %% bypassed
for call in (StraightThroughRound.apply, StraightThroughRound.forward):
    y = call(x)
    (dx,) = torch.autograd.grad(y.sum(), x)
    print(f"{call.__name__}: grad_fn {y.grad_fn.name()}, dx {dx.tolist()}")
