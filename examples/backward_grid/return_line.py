# needs: torch
"""What backward returns: one value for each argument that was given to apply, in their order.

The node is the scaled SiLU again, with torch arithmetic in place of the two kernels: the
contract is the same, and the file runs anywhere.
"""

# %% setup
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


def gradients(dy, x, w):
    s = torch.sigmoid(x)
    return dy * w * (s + x * s * (1 - s)), (dy * x * s).sum()


x = torch.linspace(-2, 2, 5, device=device, requires_grad=True)
w = torch.tensor(1.5, device=device, requires_grad=True)


# %% two-values
class MissingNone(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, inplace=False):
        ctx.save_for_backward(x, w)
        return w * x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx, dw = gradients(dy, x, w)
        return dx, dw


# %% flag-passed
try:
    MissingNone.apply(x, w, False).sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("two gradients for three arguments were accepted")

# %% flag-left-out
MissingNone.apply(x, w).sum().backward()
print(f"dw: {w.grad.item():.4f}")
x.grad = w.grad = None


# %% mended
class OnePerArgument(MissingNone):
    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx, dw = gradients(dy, x, w)
        return dx, dw, None


for arguments in [(x, w, False), (x, w)]:
    OnePerArgument.apply(*arguments).sum().backward()
    print(f"{len(arguments)} arguments, 3 values, dw: {w.grad.item():.4f}")
    x.grad = w.grad = None


# %% wrong-order
class WrongOrder(MissingNone):
    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx, dw = gradients(dy, x, w)
        return dw, dx, None


try:
    WrongOrder.apply(x, w, False).sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("a gradient of the wrong shape was accepted")

# %% wrong-order-same-shape
a = torch.tensor(2.0, device=device, requires_grad=True)
b = torch.tensor(3.0, device=device, requires_grad=True)
WrongOrder.apply(a, b, False).backward()
right = gradients(torch.ones_like(a), a, b)
print(f"a.grad: {a.grad.item():.4f}  (should be {right[0].item():.4f})")
print(f"b.grad: {b.grad.item():.4f}  (should be {right[1].item():.4f})")


# %% wrong-shape
one = torch.ones(1, device=device, requires_grad=True)
print(f"w: {tuple(one.shape)}, dw: {tuple(gradients(torch.ones_like(x), x, one)[1].shape)}")
try:
    OnePerArgument.apply(x, one, False).sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("a gradient without the dimension of w was accepted")


# %% right-shape
class ShapedLikeW(MissingNone):
    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dx, dw = gradients(dy, x, w)
        return dx, dw.view(w.shape), None


ShapedLikeW.apply(x, one, False).sum().backward()
print(f"w.grad: {tuple(one.grad.shape)}")
