"""A kernel that walks through memory is right on a transposed view, if y has the same strides."""

# %% kernel
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def scale_kernel(x_ptr, y_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, factor * x, mask=mask)


def scale_into(y, x):
    scale_kernel[(1,)](x, y, 10.0, x.numel(), BLOCK=8)
    print(f"x strides {x.stride()}, y strides {y.stride()}, right: {torch.equal(y, 10.0 * x)}")
    print(f"y: {y.tolist()}")


x = torch.arange(6.0, device=device).view(2, 3).t()
print(f"x: {x.tolist()}")

# %% same-strides
scale_into(torch.empty_like(x), x)

# %% other-strides
scale_into(torch.empty(x.shape, device=device), x)
