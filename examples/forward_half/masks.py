"""Offsets choose the elements of a block; the mask keeps the last block inside the tensor."""

# %% setup
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% store-without-mask
@triton.jit
def fill_kernel(out_ptr, n, BLOCK: tl.constexpr, MASKED: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if MASKED:
        tl.store(out_ptr + offsets, 1.0, mask=offsets < n)
    else:
        tl.store(out_ptr + offsets, 1.0)


memory = torch.zeros(16, device=device)
mine, neighbour = memory[:10], memory[10:]
fill_kernel[(triton.cdiv(10, 4),)](mine, 10, BLOCK=4, MASKED=False)
print(f"mine: {mine.tolist()}")
print(f"neighbour: {neighbour.tolist()}")

# %% store-with-mask
memory.zero_()
fill_kernel[(triton.cdiv(10, 4),)](mine, 10, BLOCK=4, MASKED=True)
print(f"mine: {mine.tolist()}")
print(f"neighbour: {neighbour.tolist()}")


# %% load-with-zero
@triton.jit
def max_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr, OTHER: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n, other=OTHER)
    tl.store(out_ptr, tl.max(x, axis=0))


x = torch.tensor([-3.0, -1.0, -2.0], device=device)
largest = torch.empty(1, device=device)
max_kernel[(1,)](x, largest, 3, BLOCK=4, OTHER=0.0)
print(f"largest: {largest.item()}")

# %% load-with-neutral
max_kernel[(1,)](x, largest, 3, BLOCK=4, OTHER=float("-inf"))
print(f"largest: {largest.item()}")
