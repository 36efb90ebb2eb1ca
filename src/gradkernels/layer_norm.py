"""LayerNorm: two statistics a row forward, two sums a row and two sums a column backward."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._column_sum import column_sum
from gradkernels._launch import (
    as_rows,
    autocast_to_fp32,
    check_tensors,
    check_trailing,
    first_order,
    multiprocessors,
    on_device_of,
    statistic_dtype,
    tile,
    widen,
)


@triton.jit
def layer_norm_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    mean_ptr,
    rstd_ptr,
    rows,
    n,
    x_stride,
    eps: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    HAS_BIAS: tl.constexpr,
):
    """x̂ = (x − mean) rstd and y = w x̂ + b, for ROWS rows.

    The variance is the mean of (x − mean)², in a pass of its own: mean(x²) − mean² loses all its
    digits when a row's mean is large beside its spread.

    Args:
        x_ptr: rows × n at a row stride of x_stride, read.
        w_ptr, b_ptr: n elements each, read; b only if HAS_BIAS.
        y_ptr: rows × n, written.
        mean_ptr, rstd_ptr: one fp32 (fp64) cell a row each, written.
    """
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    total = tl.zeros([ROWS, BLOCK], dtype=mean_ptr.dtype.element_ty)
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < n)[None, :]
        total += widen(tl.load(x_ptr + row[:, None] * x_stride + col, mask=mask, other=0.0))
    mean = tl.sum(total, axis=1) / n
    squares = tl.zeros([ROWS, BLOCK], dtype=mean_ptr.dtype.element_ty)
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < n)[None, :]
        x = widen(tl.load(x_ptr + row[:, None] * x_stride + col, mask=mask, other=0.0))
        centred = tl.where(mask, x - mean[:, None], 0.0)
        squares += centred * centred
    rstd = tl.rsqrt(tl.sum(squares, axis=1) / n + eps)
    tl.store(mean_ptr + row, mean, mask=row < rows)
    tl.store(rstd_ptr + row, rstd, mask=row < rows)
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)
        mask = (row < rows)[:, None] & (col < n)[None, :]
        x = widen(tl.load(x_ptr + row[:, None] * x_stride + col, mask=mask, other=0.0))
        w = tl.load(w_ptr + col, mask=col < n, other=0.0).to(x.dtype)
        y = w * ((x - mean[:, None]) * rstd[:, None])
        if HAS_BIAS:
            y += tl.load(b_ptr + col, mask=col < n, other=0.0).to(x.dtype)
        tl.store(y_ptr + row[:, None] * n + col, y, mask=mask)


@triton.jit
def layer_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dw_ptr,
    db_ptr,
    rows,
    n,
    dy_stride,
    x_stride,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    STAGES: tl.constexpr,
    NEED_DX: tl.constexpr,
    NEED_DW: tl.constexpr,
    NEED_DB: tl.constexpr,
):
    """dx = rstd (w dy − mean(w dy) − x̂ mean(w dy x̂)), and this program's share of dw and db.

    Args:
        dy_ptr, x_ptr: rows × n at row strides dy_stride and x_stride, read.
        w_ptr: n elements, read.
        mean_ptr, rstd_ptr: one cell a row each, read.
        dx_ptr: rows × n, written if NEED_DX.
        dw_ptr, db_ptr: a row of n fp32 (fp64) cells for each program, for Σ dy x̂ and Σ dy, written
            if NEED_DW and NEED_DB. A row wider than one block is added to block by block, from
            zero.
    """
    dw_ptr += tl.program_id(0).to(tl.int64) * n
    db_ptr += tl.program_id(0).to(tl.int64) * n
    dw = tl.zeros([ROWS, BLOCK], dtype=dw_ptr.dtype.element_ty)
    db = tl.zeros([ROWS, BLOCK], dtype=dw_ptr.dtype.element_ty)
    first, step = tl.program_id(0).to(tl.int64) * ROWS, tl.num_programs(0) * ROWS
    for start in tl.range(first, rows, step, num_stages=STAGES):
        row = start + tl.arange(0, ROWS)
        mean = tl.load(mean_ptr + row, mask=row < rows, other=0.0)[:, None]
        rstd = tl.load(rstd_ptr + row, mask=row < rows, other=0.0)[:, None]
        total = tl.zeros([ROWS, BLOCK], dtype=dw_ptr.dtype.element_ty)
        product = tl.zeros([ROWS, BLOCK], dtype=dw_ptr.dtype.element_ty)
        for block in range(BLOCKS):
            col = block * BLOCK + tl.arange(0, BLOCK)
            mask = (row < rows)[:, None] & (col < n)[None, :]
            dy = widen(tl.load(dy_ptr + row[:, None] * dy_stride + col, mask=mask, other=0.0))
            x = widen(tl.load(x_ptr + row[:, None] * x_stride + col, mask=mask, other=0.0))
            w = tl.load(w_ptr + col, mask=col < n, other=0.0).to(x.dtype)
            total += w * dy
            product += w * dy * ((x - mean) * rstd)
        mean_total = tl.sum(total, axis=1)[:, None] / n
        mean_product = tl.sum(product, axis=1)[:, None] / n
        for block in range(BLOCKS):
            col = block * BLOCK + tl.arange(0, BLOCK)
            mask = (row < rows)[:, None] & (col < n)[None, :]
            dy = widen(tl.load(dy_ptr + row[:, None] * dy_stride + col, mask=mask, other=0.0))
            x = widen(tl.load(x_ptr + row[:, None] * x_stride + col, mask=mask, other=0.0))
            w = tl.load(w_ptr + col, mask=col < n, other=0.0).to(x.dtype)
            x_hat = (x - mean) * rstd
            if NEED_DX:
                dx = rstd * (w * dy - mean_total - x_hat * mean_product)
                tl.store(dx_ptr + row[:, None] * n + col, dx, mask=mask)
            if NEED_DW:
                if BLOCKS == 1:
                    dw += dy * x_hat
                else:
                    tl.atomic_add(dw_ptr + col, tl.sum(dy * x_hat, axis=0), mask=col < n)
            if NEED_DB:
                if BLOCKS == 1:
                    db += dy
                else:
                    tl.atomic_add(db_ptr + col, tl.sum(dy, axis=0), mask=col < n)
    if BLOCKS == 1:
        col = tl.arange(0, BLOCK)
        if NEED_DW:
            tl.store(dw_ptr + col, tl.sum(dw, axis=0), mask=col < n)
        if NEED_DB:
            tl.store(db_ptr + col, tl.sum(db, axis=0), mask=col < n)


def layer_norm_forward(
    x: Tensor, w: Tensor, b: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Launch `layer_norm_kernel`; returns y in x's shape, and one mean and rstd a row."""
    n = w.numel()
    x_rows = as_rows(x, n)
    rows = x_rows.shape[0]
    y = torch.empty(x.shape, dtype=x.dtype, device=x.device)
    mean = torch.empty(rows, dtype=statistic_dtype(x), device=x.device)
    rstd = torch.empty_like(mean)
    ROWS, BLOCK, BLOCKS, warps = tile(n, 4096)
    with on_device_of(x):
        layer_norm_kernel[(triton.cdiv(rows, ROWS),)](
            x_rows, w.contiguous(), w if b is None else b.contiguous(), y, mean, rstd,
            rows, n, x_rows.stride(0), eps, ROWS, BLOCK, BLOCKS, b is not None, num_warps=warps,
        )  # fmt: skip
    return y, mean, rstd


def layer_norm_backward(
    dy: Tensor,
    x: Tensor,
    w: Tensor,
    mean: Tensor,
    rstd: Tensor,
    need_dx: bool = True,
    need_dw: bool = True,
    need_db: bool = True,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Launch `layer_norm_backward_kernel` and, for dw and db, `column_sum_kernel`.

    db has the dtype of w, as the bias has.
    """
    n = w.numel()
    dy_rows, x_rows = as_rows(dy, n), as_rows(x, n)
    rows = x_rows.shape[0]
    ROWS, BLOCK, BLOCKS, warps = tile(n, 4096)
    programs = min(triton.cdiv(rows, ROWS), 2 * multiprocessors(x))
    dx = torch.empty(x.shape, dtype=x.dtype, device=x.device) if need_dx else None
    dw, db = (torch.zeros if BLOCKS > 1 else torch.empty)(
        2, programs, n, dtype=rstd.dtype, device=x.device
    )
    with on_device_of(x):
        layer_norm_backward_kernel[(programs,)](
            dy_rows, x_rows, w.contiguous(), mean, rstd, dx, dw, db,
            rows, n, dy_rows.stride(0), x_rows.stride(0),
            ROWS, BLOCK, BLOCKS, 3, need_dx, need_dw, need_db, num_warps=warps,
        )  # fmt: skip
    return (
        dx,
        column_sum(dw, w.dtype).view(w.shape) if need_dw else None,
        column_sum(db, w.dtype).view(w.shape) if need_db else None,
    )


class LayerNorm(torch.autograd.Function):
    """The graph node of `layer_norm`. Saves x, w and two numbers a row, mean and rstd."""

    @staticmethod
    def forward(
        x: Tensor, w: Tensor, b: Tensor | None, eps: float
    ) -> tuple[Tensor, Tensor, Tensor]:
        return layer_norm_forward(x, w, b, eps)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, w, *_ = inputs
        _, mean, rstd = output
        ctx.mark_non_differentiable(mean, rstd)
        ctx.save_for_backward(x, w, mean, rstd)

    @staticmethod
    def backward(
        ctx: Any, dy: Tensor, _dmean: Tensor, _drstd: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        need_dx, need_dw, need_db, _ = ctx.needs_input_grad
        dx, dw, db = first_order(
            layer_norm_backward, dy, *ctx.saved_tensors, need_dx, need_dw, need_db
        )
        return dx, dw, db, None


def layer_norm(x: Tensor, weight: Tensor, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    r"""Layer normalisation over the trailing dimensions, differentiable once.

    With $\hat x = (x - \mu)\,r$ and $r = (\operatorname{mean}((x-\mu)^2) + \epsilon)^{-1/2}$ for
    each row:

    $$y = w\,\hat x + b, \qquad dx = r\,(w\,dy - \operatorname{mean}(w\,dy) -
    \hat x\,\operatorname{mean}(w\,dy\,\hat x)), \qquad dw = \sum_\text{rows} dy\,\hat x, \qquad
    db = \sum_\text{rows} dy$$

    Args:
        x: (..., *weight.shape), any layout, fp16, bf16, fp32 or fp64.
        weight: w; its shape says which trailing dimensions make a row. Any of these dtypes.
        bias: b, of weight's shape and dtype, or `None`.
        eps: added under the root.

    Returns:
        y, contiguous, of x's shape and dtype. Statistics, dw and db are fp32, for fp64 fp64, and
        dw and db are rounded to the parameters' dtype at the end; the same bits on every run.
        Inside autocast, half-precision arguments are cast to fp32 first.

    Raises:
        TypeError: x, weight or bias is no floating tensor, or bias has another dtype than weight.
        ValueError: one of them is where no kernel can run, x does not end in weight's shape, or
            bias is not of weight's shape.

    Source: Ba, Kiros and Hinton, "Layer Normalization", 2016 (arXiv:1607.06450).
    """
    check_tensors("layer_norm", x=x, weight=weight, bias=bias)
    check_trailing("layer_norm", x, weight)
    if bias is not None and bias.shape != weight.shape:
        raise ValueError(
            f"layer_norm: bias has shape {tuple(bias.shape)}; expected weight's, "
            f"{tuple(weight.shape)}"
        )
    if bias is not None and bias.dtype != weight.dtype:
        raise TypeError(
            f"layer_norm: bias has dtype {bias.dtype}; expected weight's, {weight.dtype}"
        )
    x, weight, bias = autocast_to_fp32(x, weight, bias)
    y, _, _ = LayerNorm.apply(x, weight, bias, eps)
    return y
