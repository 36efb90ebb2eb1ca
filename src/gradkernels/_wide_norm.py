"""The backward of a norm whose row no program can hold: its means first, then its columns apart."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels import _launch
from gradkernels._column_sum import new_partials
from gradkernels._compiled import keeps_compiled
from gradkernels._launch import (
    as_rows,
    ceil_div,
    load_tile,
    multiple,
    multiprocessors,
    on_device_of,
    unit,
)


@triton.jit
def load_factors(dy_ptr, x_ptr, w, mean, rstd, row, col, dy_stride, x_stride, mask):
    """dy, x̂ and h = w dy of a tile."""
    dy = load_tile(dy_ptr, row, col, dy_stride, mask)
    x_hat = (load_tile(x_ptr, row, col, x_stride, mask) - mean) * rstd
    return dy, x_hat, dy * w.to(dy.dtype)


@keeps_compiled
@triton.jit
def row_means_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    means_ptr,
    n,
    dy_stride,
    x_stride,
    UNIT: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
    CENTRED: tl.constexpr,
):
    """mean(h) and mean(h x̂), with h = w dy and x̂ = (x − mean) rstd, of one row.

    Args:
        dy_ptr, x_ptr: rows × n at row strides dy_stride and x_stride, read.
        w_ptr: n elements, read.
        mean_ptr, rstd_ptr: one cell a row each, read; mean only if CENTRED, else it is 0.
        means_ptr: two cells a row, written.
    """
    n = multiple(n, UNIT)
    dy_stride, x_stride = multiple(dy_stride, UNIT), multiple(x_stride, UNIT)
    row = tl.program_id(0).to(tl.int64)
    mean = tl.load(mean_ptr + row) if CENTRED else 0.0
    rstd = tl.load(rstd_ptr + row)
    total = tl.zeros([BLOCK], dtype=rstd_ptr.dtype.element_ty)
    product = total
    for start in tl.range(0, n, BLOCK, num_stages=STAGES):
        col = start + tl.arange(0, BLOCK)
        mask = col < n
        w = tl.load(w_ptr + col, mask=mask, other=0.0)
        _dy, x_hat, h = load_factors(
            dy_ptr, x_ptr, w, mean, rstd, row, col, dy_stride, x_stride, mask
        )
        total += h
        product += h * x_hat
    tl.store(means_ptr + 2 * row, tl.sum(total, axis=0) / n)
    tl.store(means_ptr + 2 * row + 1, tl.sum(product, axis=0) / n)


@keeps_compiled
@triton.jit
def wide_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    means_ptr,
    dx_ptr,
    sums_ptr,
    rows,
    n,
    dy_stride,
    x_stride,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
    CENTRED: tl.constexpr,
    NEED_DX: tl.constexpr,
    NEED_SUMS: tl.constexpr,
    ATOMIC: tl.constexpr,
):
    """dx = rstd (h − mean(h) − x̂ mean(h x̂)), without mean(h) unless CENTRED, and a share of sums.

    A group of programs, one for each strip of BLOCK columns, takes ROWS rows, skips those of the
    other groups, and so on: from the last rows, which `row_means_kernel` has just read, to the
    first.

    Args:
        dy_ptr, x_ptr, w_ptr, mean_ptr, rstd_ptr, means_ptr: as `row_means_kernel` has them, read;
            means only if NEED_DX.
        dx_ptr: rows × n, written if NEED_DX.
        sums_ptr: for each group n cells for Σ dy x̂ and, if CENTRED, n for Σ dy, written if
            NEED_SUMS; with ATOMIC, where there is no Σ dy, n in all, added to.
    """
    n = multiple(n, UNIT)
    dy_stride, x_stride = multiple(dy_stride, UNIT), multiple(x_stride, UNIT)
    SUMS: tl.constexpr = 2 if CENTRED else 1
    strips = tl.cdiv(n, BLOCK)
    group = (tl.program_id(0) // strips).to(tl.int64)
    step = tl.num_programs(0) // strips * ROWS
    last = (rows - 1) // ROWS * ROWS
    c = tl.program_id(0) % strips * BLOCK + tl.arange(0, BLOCK)
    col = c[None, :]
    zeros = tl.zeros([ROWS, BLOCK], dtype=rstd_ptr.dtype.element_ty)
    w = tl.load(w_ptr + col, mask=col < n, other=0.0)
    dw, db = zeros, zeros
    for start in tl.range(group * ROWS, rows, step, num_stages=STAGES):
        row = last - start + tl.arange(0, ROWS)[:, None]
        live = row < rows
        mask = live & (col < n)
        mean = tl.load(mean_ptr + row, mask=live, other=0.0) if CENTRED else 0.0
        rstd = tl.load(rstd_ptr + row, mask=live, other=0.0)
        dy, x_hat, h = load_factors(
            dy_ptr, x_ptr, w, mean, rstd, row, col, dy_stride, x_stride, mask
        )
        dw += dy * x_hat
        db += dy
        if NEED_DX:
            if CENTRED:
                h -= tl.load(means_ptr + 2 * row, mask=live, other=0.0)
            mean_product = tl.load(means_ptr + 2 * row + 1, mask=live, other=0.0)
            tl.store(dx_ptr + row * n + col, rstd * (h - x_hat * mean_product), mask=mask)
    if NEED_SUMS:
        if ATOMIC:
            tl.atomic_add(sums_ptr + c, tl.sum(dw, axis=0), mask=c < n)
        else:
            sums_ptr += group * SUMS * n
            tl.store(sums_ptr + c, tl.sum(dw, axis=0), mask=c < n)
            if CENTRED:
                tl.store(sums_ptr + n + c, tl.sum(db, axis=0), mask=c < n)


def wide_norm_backward(
    dy: Tensor,
    x: Tensor,
    w: Tensor,
    mean: Tensor | None,
    rstd: Tensor,
    need_dx: bool,
    need_sums: bool,
    how: str = "partials",
) -> tuple[Tensor | None, Tensor | None]:
    """Launch both kernels; returns dx and what is left for `column_sum`. RMSNorm has no mean.

    Once a row's means are known its columns have nothing to do with each other, so a program may
    take as few of them as it has room for. The price is that dy and x are read twice.
    """
    n, CENTRED = w.numel(), mean is not None
    dy_rows, x_rows, w = as_rows(dy, n), as_rows(x, n), w.contiguous()
    rows, dy_stride, x_stride = x_rows.shape[0], dy_rows.stride(0), x_rows.stride(0)
    UNIT = unit(n, dy_stride, x_stride)
    ROWS, BLOCK, STAGES = 2, _launch.TILE_BYTES // (8 * x.element_size()), 3
    strips = ceil_div(n, BLOCK)
    groups = min(max(1, 4 * multiprocessors(x) // strips), ceil_div(rows, ROWS))
    dx = torch.empty_like(x, memory_format=torch.contiguous_format) if need_dx else None
    means = torch.empty(rows, 2, dtype=rstd.dtype, device=x.device) if need_dx else None
    sums = new_partials(x, groups, (1 + CENTRED) * n, w.dtype, how) if need_sums else None
    with on_device_of(x):
        if need_dx:
            row_means_kernel[(rows,)](
                dy_rows, x_rows, w, mean, rstd, means,
                n, dy_stride, x_stride, UNIT, 2 * BLOCK, 4, CENTRED,
            )  # fmt: skip
        wide_norm_backward_kernel[(groups * strips,)](
            dy_rows, x_rows, w, mean, rstd, means, dx, sums,
            rows, n, dy_stride, x_stride, UNIT,
            ROWS, BLOCK, STAGES, CENTRED, need_dx, need_sums, how == "atomic",
        )  # fmt: skip
    return dx, sums
