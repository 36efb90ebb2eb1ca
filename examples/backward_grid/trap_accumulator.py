"""Trap 4: the cell that dw is added up in starts dirty, is overwritten, or is too narrow."""

# %% kernel
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def dw_kernel(dy_ptr, x_ptr, dw_ptr, n, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    block_sum = tl.sum(dy * x, axis=0)
    if ATOMIC:
        tl.atomic_add(dw_ptr, block_sum.to(dw_ptr.dtype.element_ty))
    else:
        tl.store(dw_ptr, block_sum)


def launch(dy, x, dw, block, atomic=True):
    programs = triton.cdiv(x.numel(), block)
    dw_kernel[(programs,)](dy, x, dw, x.numel(), BLOCK=block, ATOMIC=atomic)
    return dw.item()


x = dy = torch.ones(128, device=device)
print(f"true dw: {torch.dot(x, dy).item()}")

# %% stored
print(f"dw: {launch(dy, x, torch.zeros((), device=device), block=16, atomic=False)}")

# %% not-zeroed
buffer = torch.zeros((), device=device)
print(f"first backward: {launch(dy, x, buffer, block=16)}")
print(f"second backward: {launch(dy, x, buffer, block=16)}")

# %% mended
for _ in range(2):
    print(f"dw: {launch(dy, x, torch.zeros((), device=device), block=16)}")

# %% too-narrow
x = dy = torch.ones(2100, device=device)
print(f"fp16 cell: {launch(dy, x, torch.zeros((), device=device, dtype=torch.float16), block=1)}")

# %% wide-enough
print(f"fp32 cell: {launch(dy, x, torch.zeros((), device=device), block=1)}")
