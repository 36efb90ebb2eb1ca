"""The dtype that a kernel computes in: widen what is narrow, and leave fp64 as wide as it is."""

# %% in-half
import numpy
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def mean_square_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, WIDEN: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    if WIDEN:
        x = x.to(tl.float32)
    tl.store(out_ptr, tl.sum(x * x, axis=0) / BLOCK)


x = torch.full((4,), 320.0, device=device, dtype=torch.float16)
mean_square = torch.empty(1, device=device)
with numpy.errstate(over="ignore"):  # in the interpreter NumPy would warn of the inf below
    mean_square_kernel[(1,)](x, mean_square, BLOCK=4, WIDEN=False)
print(f"mean square of four times 320: {mean_square.item()}")

# %% in-fp32
mean_square_kernel[(1,)](x, mean_square, BLOCK=4, WIDEN=True)
print(f"mean square of four times 320: {mean_square.item()}")


# %% fp64
@triton.jit
def double_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr, COMPUTE_IN: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK)).to(COMPUTE_IN)
    tl.store(y_ptr + tl.arange(0, BLOCK), 2 * x)


x = torch.tensor([1 / 3, 1e300], device=device, dtype=torch.float64)
y = torch.empty_like(x)
print(f"2·x: {(2 * x).tolist()}")
for name, dtype in (("fp32", tl.float32), ("fp64", tl.float64)):
    with numpy.errstate(over="ignore"):
        double_kernel[(1,)](x, y, BLOCK=2, COMPUTE_IN=dtype)
    print(f"y, computed in {name}: {y.tolist()}")
