"""Trap 4: the cell that dw is added up in is not zero when the additions begin."""

# %% kernel
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def dw_kernel(dy_ptr, x_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(dw_ptr, tl.sum(dy * x, axis=0))


def add_up(dy, x, cell):
    dw_kernel[(triton.cdiv(x.numel(), 16),)](dy, x, cell, x.numel(), BLOCK=16)
    return cell.item()


x = dy = torch.ones(128, device=device)
print(f"true dw: {torch.dot(x, dy).item()}")

# %% not-zeroed
cell = torch.zeros((), device=device)
print(f"first backward: {add_up(dy, x, cell)}")
print(f"second backward: {add_up(dy, x, cell)}")

# %% mended
for name in ("first", "second"):
    print(f"{name} backward: {add_up(dy, x, torch.zeros((), device=device))}")
