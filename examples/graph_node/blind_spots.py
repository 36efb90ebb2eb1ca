"""Writes into a saved tensor that its version counter does not count."""

# %% setup
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


class SafeSquare(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy


def square(device="cpu"):
    x = torch.tensor([3.0], device=device, requires_grad=True)
    return x, SafeSquare.apply(x)


def report(x, y):
    y.backward()
    print(f"x {x.item()}, version {x._version}, gradient {x.grad.item()}")


# %% untouched
x, y = square()
report(x, y)

# %% detach
x, y = square()
x.detach().mul_(10)
print("version:", x._version)
try:
    y.backward()
except RuntimeError as error:
    print(f"RuntimeError: {str(error).split(':')[0]}")
else:
    raise AssertionError("a write through detach() went unnoticed")

# %% data
x, y = square()
x.data.mul_(10)
report(x, y)

# %% numpy
x, y = square()
view = x.detach().numpy()
view *= 10
report(x, y)

# %% storage
x, y = square()
x.untyped_storage().copy_(torch.tensor([30.0]).untyped_storage())
report(x, y)


# %% kernel
@triton.jit
def times_ten_kernel(x_ptr):
    tl.store(x_ptr, 10 * tl.load(x_ptr))


x, y = square(device)
times_ten_kernel[(1,)](x)
report(x, y)

# %% declared
x, y = square(device)
times_ten_kernel[(1,)](x)
torch.autograd.graph.increment_version(x)
print("version:", x._version)
try:
    y.backward()
except RuntimeError as error:
    print(f"RuntimeError: {str(error).split(':')[0]}")
else:
    raise AssertionError("a write that was declared went unnoticed")
