# needs: torch
"""save_for_backward notices that a saved tensor was changed; a ctx attribute does not."""

# %% setup
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% safe
class SafeSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy


# %% safe-untouched
x = torch.tensor([3.0], device=device, requires_grad=True)
SafeSquare.apply(x).sum().backward()
print("x.grad:", x.grad.item())

# %% safe-mutated
x = torch.tensor([3.0], device=device, requires_grad=True)
y = SafeSquare.apply(x)
print("version when saved:", x._version)
with torch.no_grad():
    x.mul_(10)
print("version now:", x._version)
try:
    y.sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("backward used a tensor that was changed after it was saved")


# %% unsafe
class UnsafeSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x = x
        return x * x

    @staticmethod
    def backward(ctx, dy):
        return 2 * ctx.x * dy


# %% unsafe-untouched
x = torch.tensor([3.0], device=device, requires_grad=True)
UnsafeSquare.apply(x).sum().backward()
print("x.grad:", x.grad.item())

# %% unsafe-mutated
x = torch.tensor([3.0], device=device, requires_grad=True)
y = UnsafeSquare.apply(x)
right = 2 * x.item()
with torch.no_grad():
    x.mul_(10)
y.sum().backward()
print("x.grad:", x.grad)
print(f"x is now {x.item()}, and 2x is {2 * x.item()}")
print(f"the gradient at the x that forward saw is {right}")

# %% same-object
x = torch.tensor([3.0], device=device, requires_grad=True)
y = UnsafeSquare.apply(x)
print("ctx.x is x:", y.grad_fn.x is x)

# %% same-memory
y = SafeSquare.apply(x)
(saved,) = y.grad_fn.saved_tensors
print("saved at the address of x:", saved.data_ptr() == x.data_ptr())
