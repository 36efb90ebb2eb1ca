"""One kernel, many programs: the grid says how many, the program id says which one this is."""

# %% setup
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% who-wrote-what
@triton.jit
def sign_kernel(out_ptr, n, BLOCK: tl.constexpr):
    program = tl.program_id(0)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, program, mask=offsets < n)


n, BLOCK = 10, 4
grid = (triton.cdiv(n, BLOCK),)
owner = torch.full((n,), -1, dtype=torch.int32, device=device)
sign_kernel[grid](owner, n, BLOCK=BLOCK)
print(f"programs: {grid[0]}")
print(f"owner of each element: {owner.tolist()}")

# %% floor-division
owner.fill_(-1)
sign_kernel[(n // BLOCK,)](owner, n, BLOCK=BLOCK)
print(f"programs: {n // BLOCK}")
print(f"owner of each element: {owner.tolist()}")


# %% two-axes
@triton.jit
def sign_tile_kernel(out_ptr, rows, columns, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr):
    row = tl.program_id(0) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)[:, None]
    column = tl.program_id(1) * BLOCK_COLUMNS + tl.arange(0, BLOCK_COLUMNS)[None, :]
    program = tl.program_id(0) * tl.num_programs(1) + tl.program_id(1)
    inside = (row < rows) & (column < columns)
    tl.store(out_ptr + row * columns + column, program, mask=inside)


tiles = torch.full((3, 6), -1, dtype=torch.int32, device=device)
grid = (triton.cdiv(3, 2), triton.cdiv(6, 4))
sign_tile_kernel[grid](tiles, 3, 6, BLOCK_ROWS=2, BLOCK_COLUMNS=4)
print(f"grid: {grid}")
for line in tiles.tolist():
    print(line)
