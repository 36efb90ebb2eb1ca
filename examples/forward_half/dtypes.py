"""Load in the tensor's dtype, compute and add up in fp32, store in the pointer's dtype."""

# %% setup
import numpy
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% store-hard-wired
@triton.jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, THROUGH_FP16: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    if THROUGH_FP16:
        x = x.to(tl.float16)
    tl.store(y_ptr + offsets, x, mask=mask)


x = torch.tensor([3.141592, 1e5], device=device)
y = torch.empty_like(x)
with numpy.errstate(over="ignore"):  # in the interpreter NumPy would warn of the inf below
    copy_kernel[(1,)](x, y, 2, BLOCK=2, THROUGH_FP16=True)
print(f"x: {x.tolist()}")
print(f"y: {y.tolist()}")
print(f"y.dtype: {y.dtype}")

# %% store-pointer-dtype
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    x = torch.tensor([3.140625, 1e4], device=device, dtype=dtype)
    y = torch.empty_like(x)
    copy_kernel[(1,)](x, y, 2, BLOCK=2, THROUGH_FP16=False)
    print(f"{dtype}: unchanged: {torch.equal(x, y)}")


# %% running-sum
@triton.jit
def running_sum_kernel(x_ptr, out_ptr, n, DTYPE: tl.constexpr):
    total = tl.load(out_ptr).to(DTYPE)
    for i in range(n):
        total += tl.load(x_ptr + i).to(DTYPE)
    tl.store(out_ptr, total)


ones = torch.ones(4096, device=device, dtype=torch.float16)
for name, dtype in (("fp16", tl.float16), ("fp32", tl.float32)):
    total = torch.zeros(1, device=device)
    running_sum_kernel[(1,)](ones, total, 4096, DTYPE=dtype)
    print(f"4096 ones added in {name}: {total.item()}")
    total = torch.full((1,), 2048.0, device=device)
    running_sum_kernel[(1,)](ones, total, 1, DTYPE=dtype)
    print(f"2048 + 1 in {name}: {total.item()}")
