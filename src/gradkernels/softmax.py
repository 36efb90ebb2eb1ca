"""Softmax over the last dimension: the backward needs the result, not the argument."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels import _launch
from gradkernels._arguments import autocast_to_fp32, check_tensors
from gradkernels._compiled import keeps_compiled
from gradkernels._launch import (
    as_rows,
    blocks_of,
    ceil_div,
    load_tile,
    multiple,
    on_device_of,
    remembered,
    tile,
    unit,
    widen,
)
from gradkernels._node import first_order, keeps_signature


@keeps_compiled
@triton.jit
def softmax_kernel(
    x_ptr,
    y_ptr,
    rows,
    n,
    x_stride,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """y = exp(x − max x) / Σ exp(x − max x), for ROWS rows.

    Args:
        x_ptr: rows × n at a row stride of x_stride, read.
        y_ptr: rows × n, written.
    """
    LOG2_E: tl.constexpr = 1.4426950408889634
    n, x_stride = multiple(n, UNIT), multiple(x_stride, UNIT)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    zeros = widen(tl.zeros([ROWS, BLOCK], x_ptr.dtype.element_ty))
    largest = zeros - float("inf")
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        x = load_tile(x_ptr, row, col, x_stride, (row < rows) & (col < n))
        x = tl.where(col < n, x, float("-inf"))
        largest = tl.maximum(largest, x)
    m = tl.max(largest, axis=1)[:, None]
    total = zeros
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        x = load_tile(x_ptr, row, col, x_stride, (row < rows) & (col < n))
        total += tl.where(col < n, tl.exp2((x - m) * LOG2_E), 0.0)
    scale = 1.0 / tl.sum(total, axis=1)[:, None]
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (col < n)
        x = load_tile(x_ptr, row, col, x_stride, mask)
        tl.store(y_ptr + row * n + col, tl.exp2((x - m) * LOG2_E) * scale, mask=mask)


@keeps_compiled
@triton.jit
def softmax_backward_kernel(
    dy_ptr,
    y_ptr,
    dx_ptr,
    rows,
    n,
    dy_stride,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    AGAIN: tl.constexpr,
):
    """dx = y (dy − Σ y dy), for ROWS rows: the last ones first, which the cache may still have.

    Args:
        dy_ptr: rows × n at a row stride of dy_stride, read.
        y_ptr: rows × n, read.
        dx_ptr: rows × n, written.
        AGAIN: whether a row is read again, from the cache, rather than held in registers.
    """
    FIRST: tl.constexpr = "evict_last" if AGAIN else ""
    SECOND: tl.constexpr = "evict_first" if AGAIN else ""
    n, dy_stride = multiple(n, UNIT), multiple(dy_stride, UNIT)
    back = tl.num_programs(0) - 1 - tl.program_id(0)
    row = back.to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    product = widen(tl.zeros([ROWS, BLOCK], y_ptr.dtype.element_ty))
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (col < n)
        dy = load_tile(dy_ptr, row, col, dy_stride, mask, FIRST)
        product += load_tile(y_ptr, row, col, n, mask, FIRST) * dy
    total = tl.sum(product, axis=1)[:, None]
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (col < n)
        dy = load_tile(dy_ptr, row, col, dy_stride, mask, SECOND)
        y = load_tile(y_ptr, row, col, n, mask, SECOND)
        tl.store(dx_ptr + row * n + col, y * (dy - total), mask=mask)


def softmax_forward(x: Tensor) -> Tensor:
    """Launch `softmax_kernel`; returns a contiguous y."""
    n = x.shape[-1] if x.ndim else 1
    x_rows = as_rows(x, n)
    rows, x_stride = x_rows.shape[0], x_rows.stride(0)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    ROWS, BLOCK, BLOCKS, warps = tile(n)
    with on_device_of(x):
        softmax_kernel[(ceil_div(rows, ROWS),)](
            x_rows, y, rows, n, x_stride, unit(n, x_stride),
            ROWS, BLOCK, BLOCKS, num_warps=warps,
        )  # fmt: skip
    return y


@remembered
def backward_tile(
    n: int, UNIT: int, size: int, MAX_BLOCK: int
) -> tuple[int, int, int, bool, dict[str, int]]:
    """ROWS, BLOCK, BLOCKS, AGAIN and options for rows of `n` elements of `size` bytes.

    Rows of up to a quarter of MAX_BLOCK are held. Of a wider one, two programs at a time hold the
    products alone, in 64 registers a thread; torch.compile knows no such limit. What can't be
    loaded by the vector takes more registers, so it comes in small blocks.
    """
    if 4 * n <= MAX_BLOCK:
        ROWS, BLOCK, BLOCKS, warps = tile(n)
        return ROWS, BLOCK, BLOCKS, False, {"num_warps": warps}
    if UNIT < 4 or size > 4:
        return 1, MAX_BLOCK // 8, blocks_of(n, MAX_BLOCK // 8), False, {"num_warps": 8}
    limit = {} if torch.compiler.is_compiling() else {"maxnreg": 64}
    if n > MAX_BLOCK:
        BLOCK, warps = MAX_BLOCK // 2, 16 if n <= 2 * MAX_BLOCK else 32
        return 1, BLOCK, blocks_of(n, BLOCK), True, {"num_warps": warps, **limit}
    ROWS, BLOCK, BLOCKS, warps = tile(n, elements_per_thread=32)
    return ROWS, BLOCK, BLOCKS, bool(limit), {"num_warps": warps, **limit}


def softmax_backward(dy: Tensor, y: Tensor) -> Tensor:
    """Launch `softmax_backward_kernel` over a contiguous `y`; `dy` may have any layout."""
    n = y.shape[-1] if y.ndim else 1
    dy_rows = as_rows(dy, n)
    rows, dy_stride = dy_rows.shape[0], dy_rows.stride(0)
    dx = torch.empty_like(y)
    UNIT = unit(n, dy_stride)
    ROWS, BLOCK, BLOCKS, AGAIN, options = backward_tile(
        n, UNIT, y.element_size(), _launch.MAX_BLOCK
    )
    with on_device_of(y):
        softmax_backward_kernel[(ceil_div(rows, ROWS),)](
            dy_rows, y, dx, rows, n, dy_stride, UNIT, ROWS, BLOCK, BLOCKS, AGAIN, **options
        )
    return dx


@keeps_signature
class Softmax(torch.autograd.Function):
    """The graph node of `softmax`. Saves y, from which the whole Jacobian follows."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return softmax_forward(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (y,) = ctx.saved_tensors
        return first_order(softmax_backward, dy, y)


def softmax(x: Tensor) -> Tensor:
    r"""Softmax over the last dimension, differentiable once.

    $$y_j = \frac{e^{x_j - m}}{\sum_k e^{x_k - m}}, \quad m = \max_k x_k, \qquad
    dx = y\,(dy - \textstyle\sum_k y_k\,dy_k)$$

    Args:
        x: any shape and layout, fp16, bf16, fp32 or fp64. A row of -inf alone gives NaN.

    Returns:
        y, contiguous, of x's shape and dtype. Computed in fp32, for fp64 in fp64. Inside autocast,
        half precision is cast to fp32 first.

    Raises:
        TypeError: x is no floating tensor.
        ValueError: x is where no kernel can run.

    Source: `torch.nn.functional.softmax(x, dim=-1)`; the maximum is taken off so that no
    exponential overflows (Blanchard, Higham and Higham, 2021, doi:10.1093/imanum/draa038).
    """
    check_tensors("softmax", x=x)
    (x,) = autocast_to_fp32(x)
    return Softmax.apply(x)
