"""Softmax over the last dimension: the backward needs the result, not the argument."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._launch import (
    as_rows,
    autocast_to_fp32,
    check_tensors,
    first_order,
    keeps_signature,
    load_tile,
    multiple,
    on_device_of,
    tile,
    unit,
    widen,
)


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
    """dx = y (dy − Σ y dy), for ROWS rows.

    A row too wide for the registers of two programs at a time is read AGAIN, from the cache.

    Args:
        dy_ptr: rows × n at a row stride of dy_stride, read.
        y_ptr: rows × n, read.
        dx_ptr: rows × n, written.
    """
    KEEP: tl.constexpr = "evict_last" if AGAIN else ""
    DROP: tl.constexpr = "evict_first" if AGAIN else ""
    n, dy_stride = multiple(n, UNIT), multiple(dy_stride, UNIT)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    product = widen(tl.zeros([ROWS, BLOCK], y_ptr.dtype.element_ty))
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (col < n)
        dy = load_tile(dy_ptr, row, col, dy_stride, mask, KEEP)
        product += load_tile(y_ptr, row, col, n, mask, KEEP) * dy
    total = tl.sum(product, axis=1)[:, None]
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        mask = (row < rows) & (col < n)
        dy = load_tile(dy_ptr, row, col, dy_stride, mask, DROP)
        y = load_tile(y_ptr, row, col, n, mask, DROP)
        tl.store(dx_ptr + row * n + col, y * (dy - total), mask=mask)


def softmax_forward(x: Tensor) -> Tensor:
    """Launch `softmax_kernel`; returns a contiguous y."""
    n = x.shape[-1] if x.ndim else 1
    x_rows = as_rows(x, n)
    rows, x_stride = x_rows.shape[0], x_rows.stride(0)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    ROWS, BLOCK, BLOCKS, warps = tile(n)
    with on_device_of(x):
        softmax_kernel[(triton.cdiv(rows, ROWS),)](
            x_rows, y, rows, n, x_stride, unit(n, x_stride),
            ROWS, BLOCK, BLOCKS, num_warps=warps,
        )  # fmt: skip
    return y


def softmax_backward(dy: Tensor, y: Tensor) -> Tensor:
    """Launch `softmax_backward_kernel` over a contiguous `y`; `dy` may have any layout."""
    n = y.shape[-1] if y.ndim else 1
    dy_rows = as_rows(dy, n)
    rows, dy_stride = dy_rows.shape[0], dy_rows.stride(0)
    dx = torch.empty_like(y)
    ROWS, BLOCK, BLOCKS, warps = tile(n)
    AGAIN = 8192 < n <= BLOCK
    # Two programs a multiprocessor; torch.compile knows no such option.
    registers = {"maxnreg": 64} if AGAIN and not torch.compiler.is_compiling() else {}
    with on_device_of(y):
        softmax_backward_kernel[(triton.cdiv(rows, ROWS),)](
            dy_rows, y, dx, rows, n, dy_stride, unit(n, dy_stride),
            ROWS, BLOCK, BLOCKS, AGAIN, num_warps=16 if AGAIN else warps, **registers,
        )  # fmt: skip
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
