"""A block is a power of two long; the mask cuts it down to any length."""

# %% refused
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def double_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(y_ptr + offsets, 2 * tl.load(x_ptr + offsets, mask=mask), mask=mask)


x = torch.tensor([1.0, 2.0, 3.0], device=device)
y = torch.zeros_like(x)
try:
    double_kernel[(1,)](x, y, 3, BLOCK=3)
except Exception as error:
    print(f"{type(error).__name__}: {str(error).splitlines()[-1]}")
else:
    raise AssertionError("a block of three was accepted")

# %% rounded-up
double_kernel[(1,)](x, y, 3, BLOCK=triton.next_power_of_2(3))
print(f"BLOCK: {triton.next_power_of_2(3)}")
print(f"y: {y.tolist()}")
