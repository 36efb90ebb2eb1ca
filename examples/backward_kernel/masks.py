"""A backward kernel needs its mask at the store, or it writes into the neighbour's gradient."""

# %% setup
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def square_backward_kernel(dy_ptr, x_ptr, dx_ptr, n, MASK_STORE: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    if MASK_STORE:
        tl.store(dx_ptr + offsets, 2 * x * dy, mask=mask)
    else:
        tl.store(dx_ptr + offsets, 2 * x * dy)


def gradients(mask_store):
    """dx of three elements, and the five of another gradient that lie behind it."""
    x = torch.tensor([1.0, 2.0, 3.0], device=device)
    memory = torch.full((8,), 7.0, device=device)
    dx, neighbour = memory[:3], memory[3:]
    square_backward_kernel[(1,)](torch.ones_like(x), x, dx, 3, mask_store, BLOCK=8)
    return dx.tolist(), neighbour.tolist()


# %% without
dx, neighbour = gradients(mask_store=False)
print("dx:", dx)
print("neighbour:", neighbour)

# %% with
dx, neighbour = gradients(mask_store=True)
print("dx:", dx)
print("neighbour:", neighbour)
