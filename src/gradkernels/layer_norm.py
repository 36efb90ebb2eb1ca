# Tuples in the kernels grow, and Triton reads no annotations.
# mypy: disable-error-code=assignment
"""LayerNorm: two statistics a row forward, two sums a row and two sums a column backward."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._arguments import autocast_to_fp32, check_tensors, check_trailing
from gradkernels._column_sum import column_sum, new_partials
from gradkernels._compiled import keeps_compiled
from gradkernels._launch import (
    TILE_BYTES,
    as_rows,
    ceil_div,
    inside,
    load_tile,
    multiple,
    multiprocessors,
    on_device_of,
    persistent_tile,
    shared_memory,
    statistic_dtype,
    tile,
    too_wide,
    unit,
)
from gradkernels._node import first_order, keeps_signature
from gradkernels._wide_norm import load_factors, wide_norm_backward


@triton.jit
def load_parameters(w_ptr, b_ptr, col, n, HAS_BIAS: tl.constexpr):
    """w and b of some columns; b = 0 unless HAS_BIAS."""
    w = tl.load(w_ptr + col, mask=col < n, other=0.0)
    b = tl.zeros_like(w)
    if HAS_BIAS:
        b = tl.load(b_ptr + col, mask=col < n, other=0.0)
    return w, b


@keeps_compiled
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
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
    STAGES: tl.constexpr,
    HAS_BIAS: tl.constexpr,
):
    """x̂ = (x − mean) rstd and y = w x̂ + b, for ROWS rows.

    The variance is the mean of (x − mean)², in a pass of its own: mean(x²) − mean² loses all its
    digits when a row's mean is large beside its spread. With STAGES there are fewer programs than
    rows: each skips those of the others and goes on, while its next rows are on their way.

    Args:
        x_ptr: rows × n at a row stride of x_stride, read.
        w_ptr, b_ptr: n elements each, read; b only if HAS_BIAS.
        y_ptr: rows × n, written.
        mean_ptr, rstd_ptr: one fp32 (fp64) cell a row each, written.
    """
    n, x_stride = multiple(n, UNIT), multiple(x_stride, UNIT)
    first = tl.program_id(0).to(tl.int64) * ROWS
    if STAGES > 1:
        end, step = rows - first, tl.num_programs(0) * ROWS
        w, b = load_parameters(w_ptr, b_ptr, tl.arange(0, BLOCK)[None, :], n, HAS_BIAS)
    else:  # once, as the compiler sees: it is no loop then
        end, step = 1, 1
    for start in tl.range(0, end, step, num_stages=STAGES):
        row = first + start + tl.arange(0, ROWS)[:, None]
        live = row < rows
        total = tl.zeros([ROWS, BLOCK], dtype=mean_ptr.dtype.element_ty)
        for block in range(BLOCKS):
            col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
            total += load_tile(x_ptr, row, col, x_stride, inside(live, col, n))
        mean = tl.sum(total, axis=1)[:, None] / n
        squares = tl.zeros([ROWS, BLOCK], dtype=mean_ptr.dtype.element_ty)
        for block in range(BLOCKS):
            col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
            x = load_tile(x_ptr, row, col, x_stride, inside(live, col, n))
            centred = tl.where(col < n, x - mean, 0.0)
            squares += centred * centred
        rstd = tl.rsqrt(tl.sum(squares, axis=1)[:, None] / n + eps)
        for block in range(BLOCKS):
            col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
            mask = inside(live, col, n)
            x = load_tile(x_ptr, row, col, x_stride, mask)
            if STAGES == 1:
                w, b = load_parameters(w_ptr, b_ptr, col, n, HAS_BIAS)
            y = w.to(x.dtype) * ((x - mean) * rstd) + b.to(x.dtype)
            tl.store(y_ptr + row * n + col, y, mask=mask)
        # Not before: what was stored in between would make x be loaded again.
        tl.store(mean_ptr + row, mean, mask=live)
        tl.store(rstd_ptr + row, rstd, mask=live)


@keeps_compiled
@triton.jit
def layer_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    mean_ptr,
    rstd_ptr,
    dx_ptr,
    dw_db_ptr,
    rows,
    n,
    width,
    dy_stride,
    x_stride,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    BLOCKS: tl.constexpr,
    STAGES: tl.constexpr,
    NEED_DX: tl.constexpr,
    NEED_DW_DB: tl.constexpr,
):
    """dx = rstd (w dy − mean(w dy) − x̂ mean(w dy x̂)), and this program's share of dw and db.

    Each program takes ROWS rows, skips those of the other programs, and so on to the end. Where
    BLOCKS programs share a row, each has `width` of its columns and reads the others' too, from
    the cache, because the means need them.

    Args:
        dy_ptr, x_ptr: rows × n at row strides dy_stride and x_stride, read.
        w_ptr: n elements, read.
        mean_ptr, rstd_ptr: one cell a row each, read.
        dx_ptr: rows × n, written if NEED_DX.
        dw_db_ptr: two rows of n cells for each group of BLOCKS programs, for Σ dy x̂ and Σ dy,
            written if NEED_DW_DB.
    """
    n = multiple(n, UNIT)
    width = multiple(width, UNIT)
    dy_stride, x_stride = multiple(dy_stride, UNIT), multiple(x_stride, UNIT)
    block = tl.program_id(0) % BLOCKS
    end = multiple(tl.minimum(n, (block + 1) * width), UNIT)
    group = (tl.program_id(0) // BLOCKS).to(tl.int64)
    step = tl.num_programs(0) // BLOCKS * ROWS
    row = tl.arange(0, ROWS)[:, None]
    zeros = tl.zeros([ROWS, BLOCK], dtype=rstd_ptr.dtype.element_ty)
    dw, db = (), ()
    for _ in tl.static_range(PARTS):
        dw, db = dw + (zeros,), db + (zeros,)  # noqa: RUF005 (Triton has no starred tuples)
    for start in tl.range(group * ROWS, rows, step, num_stages=STAGES):
        live = row < rows - start
        mean = tl.load(mean_ptr + start + row, mask=live, other=0.0)
        rstd = tl.load(rstd_ptr + start + row, mask=live, other=0.0)
        dy_rows, x_rows = dy_ptr + start * dy_stride, x_ptr + start * x_stride
        total, product = zeros, zeros
        h, x_hat, dw_next, db_next = (), (), (), ()
        for p in tl.static_range(PARTS):
            col = block * width + p * BLOCK + tl.arange(0, BLOCK)[None, :]
            mask = inside(live, col, end)
            w_p = tl.load(w_ptr + col, mask=col < n, other=0.0)
            dy_p, x_hat_p, h_p = load_factors(
                dy_rows, x_rows, w_p, mean, rstd, row, col, dy_stride, x_stride, mask
            )
            total += h_p
            product += h_p * x_hat_p
            h, x_hat = h + (h_p,), x_hat + (x_hat_p,)  # noqa: RUF005
            dw_next = dw_next + (dw[p] + dy_p * x_hat_p,)  # noqa: RUF005
            db_next = db_next + (db[p] + dy_p,)  # noqa: RUF005
        dw, db = dw_next, db_next
        if NEED_DX:
            for another in range(1, BLOCKS):
                other = (block + another) % BLOCKS
                other_end = multiple(tl.minimum(n, (other + 1) * width), UNIT)
                for p in tl.static_range(PARTS):
                    col = other * width + p * BLOCK + tl.arange(0, BLOCK)[None, :]
                    mask = inside(live, col, other_end)
                    w_p = tl.load(w_ptr + col, mask=col < n, other=0.0)
                    dy_p, x_hat_p, h_p = load_factors(
                        dy_rows, x_rows, w_p, mean, rstd, row, col, dy_stride, x_stride, mask
                    )
                    total += h_p
                    product += h_p * x_hat_p
            mean_total = tl.sum(total, axis=1)[:, None] / n
            mean_product = tl.sum(product, axis=1)[:, None] / n
            for p in tl.static_range(PARTS):
                col = block * width + p * BLOCK + tl.arange(0, BLOCK)[None, :]
                mask = inside(live, col, end)
                dx = rstd * (h[p] - mean_total - x_hat[p] * mean_product)
                tl.store(dx_ptr + start * n + row * n + col, dx, mask=mask)
    if NEED_DW_DB:
        dw_db_ptr += 2 * group * n
        for p in tl.static_range(PARTS):
            col = block * width + p * BLOCK + tl.arange(0, BLOCK)
            tl.store(dw_db_ptr + col, tl.sum(dw[p], axis=0), mask=col < end)
            tl.store(dw_db_ptr + n + col, tl.sum(db[p], axis=0), mask=col < end)


def layer_norm_forward(
    x: Tensor, w: Tensor, b: Tensor | None, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Launch `layer_norm_kernel`; returns y in x's shape, and one mean and rstd a row."""
    n = w.numel()
    x_rows = as_rows(x, n)
    rows, x_stride = x_rows.shape[0], x_rows.stride(0)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    mean = torch.empty(rows, dtype=statistic_dtype(x), device=x.device)
    rstd = torch.empty_like(mean)
    ROWS, BLOCK, BLOCKS, warps = tile(n, elements_per_thread=32, least_warps=1)
    programs, STAGES, size = ceil_div(rows, ROWS), 1, BLOCK * x.element_size()
    # Of programs with such a row too few are at work at once to have the next on its way.
    if BLOCKS == 1 and size > TILE_BYTES and shared_memory(x) >= 2 * size:
        programs, STAGES = min(rows, multiprocessors(x)), min(3, shared_memory(x) // size)
    with on_device_of(x):
        layer_norm_kernel[(programs,)](
            x_rows, w.contiguous(), w if b is None else b.contiguous(), y, mean, rstd,
            rows, n, x_stride, eps, unit(n, x_stride),
            ROWS, BLOCK, BLOCKS, STAGES, b is not None, num_warps=warps,
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
    """Launch `layer_norm_backward_kernel` and, for dw and db together, `column_sum_kernel`."""
    n, need_dw_db = w.numel(), need_dw or need_db
    if too_wide(x, n, sums=2):
        dx, dw_db = wide_norm_backward(dy, x, w, mean, rstd, need_dx, need_dw_db)
    else:
        dy_rows, x_rows = as_rows(dy, n), as_rows(x, n)
        rows, dy_stride, x_stride = x_rows.shape[0], dy_rows.stride(0), x_rows.stride(0)
        t = persistent_tile(x, w, sums=2)
        groups = min(t.programs, ceil_div(rows, t.ROWS))
        dx = torch.empty_like(x, memory_format=torch.contiguous_format) if need_dx else None
        dw_db = new_partials(x, groups, 2 * n, w.dtype) if need_dw_db else None
        with on_device_of(x):
            layer_norm_backward_kernel[(groups * t.BLOCKS,)](
                dy_rows, x_rows, w.contiguous(), mean, rstd, dx, dw_db,
                rows, n, t.width, dy_stride, x_stride, unit(n, dy_stride, x_stride),
                t.ROWS, t.BLOCK, t.PARTS, t.BLOCKS, t.STAGES, need_dx, need_dw_db,
                num_warps=t.warps,
            )  # fmt: skip
    if dw_db is None:
        return dx, None, None
    dw, db = column_sum(dw_db, w.dtype, (2, *w.shape))
    return dx, dw if need_dw else None, db if need_db else None


@keeps_signature
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
        ctx.set_materialize_grads(False)  # else zeros are filled in for what has no gradient
        ctx.save_for_backward(x, w, mean, rstd)

    @staticmethod
    def backward(
        ctx: Any, dy: Tensor | None, _dmean: None, _drstd: None
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        if dy is None:
            return None, None, None, None
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
