"""Linear: one matrix product forward and two backward, all by one kernel."""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._arguments import autocast_to_half, check_one_dtype, check_tensors
from gradkernels._column_sum import column_sum, new_partials
from gradkernels._compiled import keeps_compiled
from gradkernels._dot import dot
from gradkernels._launch import ceil_div, multiprocessors, on_device_of, remembered, widen
from gradkernels._node import first_order, keeps_signature
from gradkernels._tiles import Tiler, tiler

# BLOCK_M, BLOCK_N, BLOCK_K, warps, stages by bytes an element, largest tile first: the larger the
# tile, the oftener each element loaded is used; the smaller, the more programs share the work.
TILES = {
    2: ((128, 256, 64, 8, 3), (128, 128, 64, 8, 3), (64, 64, 64, 4, 3), (16, 64, 64, 4, 3)),
    4: ((128, 128, 16, 8, 3), (64, 64, 16, 4, 3), (16, 64, 32, 4, 3)),
    8: ((64, 64, 16, 4, 3), (16, 32, 16, 4, 3)),
}

# How many rows of tiles are worked on together.
GROUP = 4


@triton.jit
def described(x, rows, columns, BLOCK_ROWS: tl.constexpr, BLOCK_COLUMNS: tl.constexpr):
    """`x` if the host has described it to TMA, else a contiguous matrix described here."""
    if isinstance(x, tl.core.tensor_descriptor_base):
        return x
    else:  # noqa: RET505 (Triton compiles both sides of an if without else)
        stride = tl.cast(columns, tl.int64)
        return tl.make_tensor_descriptor(
            x, [rows, columns], [stride, 1], [BLOCK_ROWS, BLOCK_COLUMNS]
        )


@keeps_compiled
@triton.jit(do_not_specialize=["M", "N", "K"])
def matmul_kernel(
    a,
    b,
    bias_ptr,
    c,
    M,
    N,
    K,
    A_TRANSPOSED: tl.constexpr,
    B_TRANSPOSED: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
):
    """C = A B + bias, tile by tile of C; each program takes every num_programs-th tile.

    Args:
        a: A, M × K, as `tiler` gives it, read; its transpose if A_TRANSPOSED.
        b: B, K × N, as `tiler` gives it, read; its transpose if B_TRANSPOSED.
        bias_ptr: N elements, read, or None.
        c: C, M × N, as `tiler` gives it, written.
    """
    if A_TRANSPOSED:
        a = described(a, K, M, BLOCK_K, BLOCK_M)
    else:
        a = described(a, M, K, BLOCK_M, BLOCK_K)
    if B_TRANSPOSED:
        b = described(b, N, K, BLOCK_N, BLOCK_K)
    else:
        b = described(b, K, N, BLOCK_K, BLOCK_N)
    # Not by a call: torch.compile would take all that goes into it for written, c's strides too.
    if not isinstance(c, tl.core.tensor_descriptor_base):
        stride = tl.cast(N, tl.int64)
        c = tl.make_tensor_descriptor(c, [M, N], [stride, 1], [BLOCK_M, BLOCK_N])
    WIDE: tl.constexpr = tl.float64 if c.dtype == tl.float64 else tl.float32
    tiles_m, tiles_n = tl.cdiv(M, BLOCK_M), tl.cdiv(N, BLOCK_N)
    # Flattened, the two loops are one: the first loads of a tile overlap the end of the last.
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=True):
        # Tiles at work at the same time form columns of GROUP tiles, not one long row: they read
        # fewer rows of A and columns of B between them, and the L2 cache holds those.
        first_row = tile // (GROUP * tiles_n) * GROUP
        rows = min(tiles_m - first_row, GROUP)
        place = tile % (GROUP * tiles_n)
        m = (first_row + place % rows) * BLOCK_M
        n = place // rows * BLOCK_N
        total = tl.zeros([BLOCK_M, BLOCK_N], dtype=WIDE)
        for k in range(0, K, BLOCK_K):
            a_tile = a.load([k, m]).T if A_TRANSPOSED else a.load([m, k])
            b_tile = b.load([n, k]).T if B_TRANSPOSED else b.load([k, n])
            total = dot(a_tile, b_tile, total)
        if bias_ptr is not None:
            column = n + tl.arange(0, BLOCK_N)
            total += tl.load(bias_ptr + column, mask=column < N, other=0.0).to(WIDE)[None, :]
        c.store([m, n], total.to(c.dtype))


@keeps_compiled
@triton.jit(do_not_specialize=["rows"])
def linear_backward_bias_kernel(
    dy_ptr,
    db_ptr,
    rows,
    n,
    dy_row,
    dy_col,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    """This program's share of db[j] = Σᵢ dy[i, j], in a row of its own.

    Args:
        dy_ptr: rows × n at strides dy_row and dy_col, read.
        db_ptr: programs × n, written in its own dtype.
    """
    col = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    db = widen(tl.zeros([BLOCK_M, BLOCK_N], dtype=dy_ptr.dtype.element_ty))
    step = tl.num_programs(0) * BLOCK_M
    for start in tl.range(tl.program_id(0) * BLOCK_M, rows, step, num_stages=3):
        row = start + tl.arange(0, BLOCK_M)
        dy_ptrs = dy_ptr + row.to(tl.int64)[:, None] * dy_row + col.to(tl.int64)[None, :] * dy_col
        db += widen(tl.load(dy_ptrs, mask=(row < rows)[:, None] & (col < n)[None, :], other=0.0))
    db_ptr += tl.program_id(0).to(tl.int64) * n
    tl.store(db_ptr + col, tl.sum(db, axis=0), mask=col < n)


def product(a: Tensor, b: Tensor, bias: Tensor | None = None) -> Tensor:
    """Launch `matmul_kernel` over two matrices of any strides."""
    (M, K), N = a.shape, b.shape[1]
    tiled = tiler(a)
    c = tiled.empty(a, M, N)
    if not (M and N and K):
        return c.zero_() if bias is None else c.copy_(bias)
    programs = multiprocessors(a)
    tile = choose_tile(M, N, a.element_size(), tiled.shared_memory, programs)
    BLOCK_M, BLOCK_N, BLOCK_K, warps, stages = tile
    grid = (min(ceil_div(M, BLOCK_M) * ceil_div(N, BLOCK_N), programs),)
    a_tiles, a_transposed = operand(tiled, a, BLOCK_M, BLOCK_K)
    b_tiles, b_transposed = operand(tiled, b, BLOCK_K, BLOCK_N)
    with on_device_of(a):
        matmul_kernel[grid](
            a_tiles, b_tiles, bias if bias is None else bias.contiguous(),
            tiled(c, [BLOCK_M, BLOCK_N]), M, N, K, a_transposed, b_transposed,
            BLOCK_M, BLOCK_N, BLOCK_K, GROUP, num_warps=warps, num_stages=stages,
        )  # fmt: skip
    return c.contiguous()


@remembered
def choose_tile(
    M: int, N: int, size: int, memory: int, programs: int
) -> tuple[int, int, int, int, int]:
    """The largest tile of which shared memory holds the buffers and every program gets one."""
    for tile in TILES[size]:
        BLOCK_M, BLOCK_N, BLOCK_K, _, stages = tile
        buffers = (stages * (BLOCK_M + BLOCK_N) * BLOCK_K + BLOCK_M * BLOCK_N) * size
        if buffers < memory and ceil_div(M, BLOCK_M) * ceil_div(N, BLOCK_N) >= programs:
            break
    return tile


def operand(tiled: Tiler, t: Tensor, rows: int, columns: int) -> tuple[Any, bool]:
    """`t` for tiles of rows × columns, and whether it is its transpose that lies in memory so."""
    row, column = t.stride()
    if row == 1 != column:
        return tiled(tiled.aligned(t.t()), [columns, rows]), True
    return tiled(tiled.aligned(t), [rows, columns]), False


def bias_gradient(dy: Tensor, dtype: torch.dtype) -> Tensor:
    """Launch `linear_backward_bias_kernel`, then `column_sum_kernel` over what it left."""
    rows, n = dy.shape
    BLOCK_M, BLOCK_N = 32, 128
    column_blocks = ceil_div(n, BLOCK_N)
    share = ceil_div(4 * multiprocessors(dy), max(column_blocks, 1))
    programs = min(ceil_div(rows, BLOCK_M), share)
    db = new_partials(dy, programs, n, dtype)
    with on_device_of(dy):
        linear_backward_bias_kernel[(programs, column_blocks)](
            dy, db, rows, n, *dy.stride(), BLOCK_M, BLOCK_N
        )
    return column_sum(db, dtype, db.shape[1:])


def rows_of(x: Tensor) -> Tensor:
    """`x` as a matrix: its leading dimensions made one."""
    return x if x.dim() == 2 else x.reshape(math.prod(x.shape[:-1]), x.shape[-1])


def linear_forward(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
    """Y = X Wᵀ + b."""
    return product(rows_of(x), w.t(), b).view(*x.shape[:-1], w.shape[0])


def linear_backward(
    dy: Tensor, x: Tensor, w: Tensor, need_dx: bool, need_dw: bool, need_db: bool
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """dX = dY W, dW = dYᵀ X and db = Σ dY over rows, each only if needed."""
    dy_rows, x_rows = rows_of(dy), rows_of(x)
    dx = product(dy_rows, w).view(x.shape) if need_dx else None
    dw = product(dy_rows.t(), x_rows) if need_dw else None
    db = bias_gradient(dy_rows, w.dtype) if need_db else None
    return dx, dw, db


def matmul_forward(x: Tensor, w: Tensor) -> Tensor:
    """Y = X W."""
    return product(rows_of(x), w).view(*x.shape[:-1], w.shape[1])


def matmul_backward(
    dy: Tensor, x: Tensor, w: Tensor, need_dx: bool, need_dw: bool
) -> tuple[Tensor | None, Tensor | None]:
    """dX = dY Wᵀ and dW = Xᵀ dY, each only if needed."""
    dy_rows, x_rows = rows_of(dy), rows_of(x)
    dx = product(dy_rows, w.t()).view(x.shape) if need_dx else None
    dw = product(x_rows.t(), dy_rows) if need_dw else None
    return dx, dw


@keeps_signature
class Linear(torch.autograd.Function):
    """The graph node of `linear`. Saves x and w: each is a factor of the other's gradient."""

    @staticmethod
    def forward(x: Tensor, w: Tensor, b: Tensor | None) -> Tensor:
        return linear_forward(x, w, b)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        x, w, _ = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, w = ctx.saved_tensors
        return first_order(linear_backward, dy, x, w, *ctx.needs_input_grad)


@keeps_signature
class MatMul(torch.autograd.Function):
    """The graph node of `matmul`. Saves x and w: each is a factor of the other's gradient."""

    @staticmethod
    def forward(x: Tensor, w: Tensor) -> Tensor:
        return matmul_forward(x, w)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None]:
        x, w = ctx.saved_tensors
        return first_order(matmul_backward, dy, x, w, *ctx.needs_input_grad)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Linear map with the weight in `torch.nn.Linear`'s layout, differentiable once.

    $$Y = X W^\top + b, \qquad dX = dY\,W, \qquad dW = dY^\top X, \qquad
    db = \sum_\text{rows} dY$$

    Args:
        x: X, (..., in), any layout, fp16, bf16, fp32 or fp64.
        weight: W, (out, in), any layout, of x's dtype.
        bias: b, (out,), of x's dtype, or None.

    Returns:
        Y, (..., out), contiguous, of x's dtype. Sums are fp32 (fp64 for fp64; fp32 operands are
        not rounded to TF32) and rounded once at the end. Inside autocast, arguments other than
        fp64 are cast to its dtype first, as `torch.nn.functional.linear` does.

    Raises:
        TypeError: an argument is no floating tensor, or dtypes differ.
        ValueError: an argument is where no kernel can run, or shapes do not fit.
    """
    check_tensors("linear", x=x, weight=weight, bias=bias)
    if weight.dim() != 2 or x.dim() == 0 or x.shape[-1] != weight.shape[1]:
        raise ValueError(
            f"linear: x has shape {tuple(x.shape)} and weight {tuple(weight.shape)}; "
            "expected (..., in) and (out, in)"
        )
    if bias is not None and bias.shape != weight.shape[:1]:
        raise ValueError(
            f"linear: bias has shape {tuple(bias.shape)}; expected ({weight.shape[0]},), "
            "one element for each row of weight"
        )
    x, weight, bias = autocast_to_half(x, weight, bias)
    check_one_dtype("linear", x=x, weight=weight, bias=bias)
    return Linear.apply(x, weight, bias)


def matmul(x: Tensor, w: Tensor) -> Tensor:
    r"""Linear map with the weight stored (in, out), differentiable once.

    $$Y = X W, \qquad dX = dY\,W^\top, \qquad dW = X^\top dY$$

    Args:
        x: X, (..., in), any layout, fp16, bf16, fp32 or fp64.
        w: W, (in, out), any layout, of x's dtype.

    Returns:
        Y, (..., out), contiguous; accumulation, rounding and autocast as in `linear`.

    Raises:
        TypeError: an argument is no floating tensor, or dtypes differ.
        ValueError: an argument is where no kernel can run, or shapes do not fit.
    """
    check_tensors("matmul", x=x, w=w)
    if w.dim() != 2 or x.dim() == 0 or x.shape[-1] != w.shape[0]:
        raise ValueError(
            f"matmul: x has shape {tuple(x.shape)} and w {tuple(w.shape)}; "
            "expected (..., in) and (in, out)"
        )
    x, w = autocast_to_half(x, w)
    check_one_dtype("matmul", x=x, w=w)
    return MatMul.apply(x, w)
