"""What every launcher shares: loads of its kernels, layouts, the device, and tiles of rows."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import cache, wraps
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

# Kernels are bound to the GPU or to the interpreter when their module is imported, so this is too.
INTERPRETED: bool = triton.knobs.runtime.interpret

# What one program holds of a row: in elements where it only passes through registers, in bytes
# where it waits in shared memory beside sums that stay in registers.
MAX_BLOCK = 16384
TILE_BYTES = 16384


@triton.jit
def widen(x):
    """Half precision is only a storage format: compute in fp32, and fp64 in fp64."""
    if x.dtype == tl.float64:
        return x
    else:  # noqa: RET505 (Triton compiles both sides of an if without else)
        return x.to(tl.float32)


@triton.jit
def load_tile(ptr, row, col, stride, mask, POLICY: tl.constexpr = tl.constexpr("")):  # noqa: B008
    """Rows `row` (a column vector) and columns `col` (a row) of a matrix, widened; 0 outside.

    Two loads of one tile are merged, and registers hold it in between, unless the POLICY of what
    the cache should evict differs.
    """
    tile_ptr = ptr + row.to(tl.int64) * stride + col
    return widen(tl.load(tile_ptr, mask=mask, other=0.0, eviction_policy=POLICY))


@triton.jit
def multiple(size, UNIT: tl.constexpr):
    """`size`, seen by the compiler to be the multiple of UNIT that `unit` found it to be."""
    return size // UNIT * UNIT


@triton.jit
def inside(live, col, end):
    """The mask of a persistent program's tile, without the comparison that always holds.

    One row at a time is always live: it would still cost a register for every vector of the tile.
    """
    mask = col < end
    if live.shape[0] > 1:
        mask = mask & live
    return mask


def statistic_dtype(x: Tensor) -> torch.dtype:
    """What sums over `x` are kept in."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def on_device_of(tensor: Tensor) -> AbstractContextManager:
    """Make `tensor`'s GPU the current one: Triton launches there, wherever its arguments are."""
    if tensor.is_cuda and tensor.device.index != torch.cuda.current_device():
        return torch.cuda.device(tensor.device)
    return nullcontext()


def remembered(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function` with a memory of its results, which torch.compile, whose sizes are symbols, skips.

    A small call spends more time on the host than on the GPU.
    """
    cached = cache(function)

    @wraps(function)
    def recall(*args: Any) -> Any:
        return function(*args) if torch.compiler.is_compiling() else cached(*args)

    return recall


properties = remembered(torch.cuda.get_device_properties)


def multiprocessors(tensor: Tensor) -> int:
    """How many multiprocessors `tensor`'s device has; 2 in the interpreter, so that tests share."""
    return properties(tensor.device).multi_processor_count if tensor.is_cuda else 2


def shared_memory(tensor: Tensor) -> int:
    """How many bytes of shared memory a multiprocessor of `tensor`'s device has."""
    if not tensor.is_cuda:
        return 65536
    return properties(tensor.device).shared_memory_per_multiprocessor


def dense(x: Tensor) -> Tensor:
    """`x` if its elements fill its storage, in any order, without gap or overlap; else a copy.

    An elementwise kernel may then walk the storage as one line, and `torch.empty_like` gives
    results of the same strides, which is what torch's own elementwise operations return.
    """
    if x.is_contiguous():
        return x.resolve_neg()
    return laid_out_like(x, torch.empty_like(x))


def laid_out_like(t: Tensor, x: Tensor) -> Tensor:
    """`t` in the strides of the dense tensor `x` of its shape: `t` if it has them, else a copy.

    Autograd hands over a dy of any strides: 0 after `sum`, swapped after a transpose.
    """
    if t.stride() == x.stride() or (t.is_contiguous() and x.is_contiguous()):
        return t.resolve_neg()
    return torch.empty_like(x, dtype=t.dtype).copy_(t)


def as_rows(x: Tensor, n: int) -> Tensor:
    """`x` as a matrix of rows of `n` adjacent elements, at any row stride; a copy if it must be."""
    rows = x if x.ndim == 2 and x.shape[1] == n else x.reshape(x.numel() // n if n else 0, n)
    return rows.resolve_neg() if rows.stride(1) == 1 or n <= 1 else rows.contiguous()


def unit(*sizes: int) -> int:
    """The largest power of 2, up to 8, that divides all: how many elements move at once.

    Triton looks at an argument for multiples of 16 alone, and then moves one element at a time.
    """
    for elements in (8, 4, 2):
        if all(size % elements == 0 for size in sizes):
            return elements
    return 1


def power_of_2(n: int, most: int) -> int:
    """The least power of 2 that is not below `n`, but no more than `most`.

    By comparisons: they leave a plain int where torch.compile traces with a symbol for `n`, and a
    kernel's constant must be one.
    """
    power = 1
    while power < n and power < most:
        power *= 2
    return power


def ceil_div(n: int, d: int) -> int:
    """⌈n / d⌉. `triton.cdiv` costs microseconds on the host, and a small call has several."""
    return -(-n // d)


def blocks_of(n: int, BLOCK: int) -> int:
    """n / BLOCK rounded up, at least 1; by comparisons too."""
    blocks = 1
    while blocks * BLOCK < n:
        blocks += 1
    return blocks


def tile(n: int, elements_per_thread: int = 16, least_warps: int = 4) -> tuple[int, int, int, int]:
    """How one program covers rows of `n`: ROWS at a time, BLOCK wide, in BLOCKS steps, by warps.

    Sixteen elements a thread keep enough loads in flight and leave room for several programs. One
    warp alone needs no barrier to add up a row, which tells where a row is added up twice.
    """
    BLOCK = power_of_2(n, MAX_BLOCK)
    ROWS = max(1, 32 * elements_per_thread * least_warps // BLOCK)
    warps = ROWS * BLOCK // (32 * elements_per_thread)
    return ROWS, BLOCK, blocks_of(n, BLOCK), max(1, min(32, warps))


class PersistentTile(NamedTuple):
    """How persistent programs cover rows, and how many of them there are."""

    ROWS: int  # taken at a time
    BLOCK: int  # width of a part of them
    PARTS: int  # held by one program, side by side
    BLOCKS: int  # programs that share a row, each with `width` of its columns
    width: int
    HOLD: bool  # whether the tile stays in registers, or is read again from the cache
    STAGES: int  # of the pipeline: tiles on their way, and the one in hand
    warps: int
    programs: int  # for each of the BLOCKS


def too_wide(x: Tensor, n: int, sums: int) -> bool:
    """Whether one program, or two that share it, have no room for `sums` of each column of a row.

    What can't be loaded by the vector takes more registers.
    """
    most = 4 * TILE_BYTES // sums if n % 8 == 0 else 3 * TILE_BYTES // 2
    return n * x.element_size() > most


def persistent_tile(x: Tensor, w: Tensor, sums: int) -> PersistentTile:
    """A tile for programs that go through rows of `x`, as long as `w`, with `sums` of each column.

    A program holds one tile and the sums of its columns in registers while the next tiles arrive
    in shared memory. About 60 KB a multiprocessor have to be under way to keep the memory busy:
    16 KB a tensor, twice; or less, by more and smaller programs, for shorter rows. Of a longer row,
    registers may have room for the sums alone, or for half of them, and two programs share it.
    Where rounding up to a power of 2 would leave a quarter of the threads idle, a row or a share is
    cut into five or six equal parts. Odd rows of half precision, which can't arrive by way of
    shared memory, want more programs.
    """
    return _persistent_tile(
        w.numel(), x.element_size(), w.element_size(), sums, shared_memory(x), multiprocessors(x)
    )


@remembered
def _persistent_tile(
    n: int, size: int, w_size: int, sums: int, memory: int, processors: int
) -> PersistentTile:
    if sums == 1 and n * size > 2 * TILE_BYTES:
        BLOCK = TILE_BYTES // 4
        warps = 16 if n * size <= 3 * TILE_BYTES else 32
        return PersistentTile(1, BLOCK, blocks_of(n, BLOCK), 1, n, False, 1, warps, processors)
    BLOCKS = 1 if sums == 1 or 2 * n * size <= 3 * TILE_BYTES else 2
    width = n if BLOCKS == 1 else 16 * ceil_div(n, 32)
    power, length = power_of_2(width, 2**31), width * size
    ROWS, BLOCK, warps, residents, most_under_way = 1, power, 8, 1, 4
    rounded_badly = 4 * width <= 3 * power
    if (
        size == 2
        and 16 * length > TILE_BYTES >= 4 * length
        and (8 * length > TILE_BYTES or rounded_badly or n % 16 != 0)
    ):
        BLOCK, residents = power // 8, 8
        warps = max(1, BLOCK // 128)
        while 8 * residents * length > 9 * TILE_BYTES:  # or registers don't suffice
            residents -= 1
    elif 4 * length <= TILE_BYTES:
        warps, residents = 4, 4 if 8 * length > TILE_BYTES else 2
        ROWS = TILE_BYTES // (residents * BLOCK * size)
    elif size == 2 and n % 8 != 0 and 4 * length <= 3 * TILE_BYTES:
        BLOCK, warps, residents, most_under_way = TILE_BYTES // 32, 4, 4, 0
    elif rounded_badly:
        warps, residents = (4, 2) if 4 * length <= 3 * TILE_BYTES else (8, 1)
        BLOCK = max(power // 8, TILE_BYTES // (4 * residents * size))
    elif length <= TILE_BYTES:
        ROWS = TILE_BYTES // (BLOCK * size)
    else:
        warps = 32
    PARTS = blocks_of(width, BLOCK)
    under_way = max(2, blocks_of(61440 // residents, max(1, ROWS * 2 * n * size)))
    held = PARTS * BLOCK * (2 * ROWS * size + w_size) * BLOCKS
    room = memory // residents - 2048  # the driver's share, and what reductions need
    stages = 1 + min(under_way, most_under_way, max(0, room // held))
    programs = max(1, processors * residents // BLOCKS)
    return PersistentTile(ROWS, BLOCK, PARTS, BLOCKS, width, True, stages, warps, programs)
