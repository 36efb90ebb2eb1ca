"""Three grids for dw: one atomic cell, a partial for each block, a partial for each program."""

# %% atomic
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"
BLOCK_SIZE = 1024


@triton.jit
def dw_block(dy_ptr, x_ptr, n, block, BLOCK: tl.constexpr):
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    return dy * x * tl.sigmoid(x)


@triton.jit
def dw_atomic_kernel(dy_ptr, x_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    products = dw_block(dy_ptr, x_ptr, n, tl.program_id(0), BLOCK)
    tl.atomic_add(dw_ptr, tl.sum(products, axis=0))


def dw_atomic(dy, x):
    dw = torch.zeros((), device=x.device)
    blocks = triton.cdiv(x.numel(), BLOCK_SIZE)
    dw_atomic_kernel[(blocks,)](dy, x, dw, x.numel(), BLOCK=BLOCK_SIZE)
    return dw


# %% per-block
@triton.jit
def dw_per_block_kernel(dy_ptr, x_ptr, partials_ptr, n, BLOCK: tl.constexpr):
    products = dw_block(dy_ptr, x_ptr, n, tl.program_id(0), BLOCK)
    tl.store(partials_ptr + tl.program_id(0), tl.sum(products, axis=0))


def dw_per_block(dy, x):
    blocks = triton.cdiv(x.numel(), BLOCK_SIZE)
    partials = torch.empty(blocks, device=x.device)
    dw_per_block_kernel[(blocks,)](dy, x, partials, x.numel(), BLOCK=BLOCK_SIZE)
    return partials.sum()


# %% per-program
PROGRAMS = 264


@triton.jit
def dw_per_program_kernel(dy_ptr, x_ptr, partials_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for block in range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0)):
        total += dw_block(dy_ptr, x_ptr, n, block, BLOCK)
    tl.store(partials_ptr + tl.program_id(0), tl.sum(total, axis=0))


@triton.jit
def sum_partials_kernel(partials_ptr, dw_ptr, count, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    partials = tl.load(partials_ptr + offsets, mask=offsets < count, other=0.0)
    tl.store(dw_ptr, tl.sum(partials, axis=0))


def dw_per_program(dy, x):
    programs = min(PROGRAMS, triton.cdiv(x.numel(), BLOCK_SIZE))
    partials = torch.empty(programs, device=x.device)
    dw = torch.empty((), device=x.device)
    dw_per_program_kernel[(programs,)](dy, x, partials, x.numel(), BLOCK=BLOCK_SIZE)
    sum_partials_kernel[(1,)](partials, dw, programs, BLOCK=triton.next_power_of_2(programs))
    return dw


# %% right
torch.manual_seed(0)
n = 2**24 + 1 if device == "cuda" else 2**16 + 1
x = torch.randn(n, device=device)
dy = torch.randn(n, device=device)
exact = (dy.double() * torch.nn.functional.silu(x.double())).sum()
magnitude = (dy.double() * torch.nn.functional.silu(x.double())).abs().sum()
for grid in (dw_atomic, dw_per_block, dw_per_program):
    error = (grid(dy, x).double() - exact).abs() / magnitude
    print(f"{grid.__name__}: error below a millionth of what was added: {error.item() < 1e-6}")

# %% bits
RUNS = 50 if device == "cuda" else 5
for grid in (dw_atomic, dw_per_block, dw_per_program):
    results = {grid(dy, x).item() for _ in range(RUNS)}
    print(f"{grid.__name__}: the same bits in every run: {len(results) == 1}")

# %% how-many tags=["measured"]
results = sorted({dw_atomic(dy, x).item() for _ in range(RUNS)})
print(f"runs: {RUNS}")
print(f"different results: {len(results)}")
print(f"smallest: {results[0]!r}")
print(f"largest: {results[-1]!r}")
spread = results[-1] - results[0]
print(f"spread, of dw: {spread / exact.abs().item():.0e}")
print(f"spread, of what was added: {spread / magnitude.item():.0e}")
