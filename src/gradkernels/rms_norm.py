# Tuples in the kernels grow, and Triton reads no annotations.
# mypy: disable-error-code=assignment
"""RMSNorm: a map whose backward needs a sum along each row and another down each column."""

from typing import Any, Literal

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._arguments import autocast_to_fp32, check_how, check_tensors, check_trailing
from gradkernels._column_sum import column_sum, new_partials
from gradkernels._compiled import keeps_compiled
from gradkernels._launch import (
    as_rows,
    ceil_div,
    inside,
    load_tile,
    multiple,
    on_device_of,
    persistent_tile,
    statistic_dtype,
    tile,
    too_wide,
    unit,
)
from gradkernels._node import first_order, keeps_signature
from gradkernels._wide_norm import wide_norm_backward


@keeps_compiled
@triton.jit
def rms_norm_kernel(
    x_ptr,
    w_ptr,
    y_ptr,
    rstd_ptr,
    rows,
    n,
    x_stride,
    eps: tl.constexpr,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    BLOCKS: tl.constexpr,
):
    """rstd = (mean(x²) + eps)^(−½) and y = w x rstd, for ROWS rows.

    Args:
        x_ptr: rows × n at a row stride of x_stride, read.
        w_ptr: n elements, read.
        y_ptr: rows × n, written.
        rstd_ptr: one fp32 (fp64) cell a row, written.
    """
    n, x_stride = multiple(n, UNIT), multiple(x_stride, UNIT)
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    live = row < rows
    squares = tl.zeros([ROWS, BLOCK], dtype=rstd_ptr.dtype.element_ty)
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        x = load_tile(x_ptr, row, col, x_stride, inside(live, col, n))
        squares += x * x
    rstd = tl.rsqrt(tl.sum(squares, axis=1)[:, None] / n + eps)
    for block in range(BLOCKS):
        col = block * BLOCK + tl.arange(0, BLOCK)[None, :]
        mask = inside(live, col, n)
        x = load_tile(x_ptr, row, col, x_stride, mask)
        w = tl.load(w_ptr + col, mask=col < n, other=0.0).to(x.dtype)
        tl.store(y_ptr + row * n + col, w * (x * rstd), mask=mask)
    tl.store(rstd_ptr + row, rstd, mask=live)  # not before: x would have to be loaded again


@triton.jit
def load_factors(
    dy_ptr, x_ptr, w_ptr, rstd, row, col, n, dy_stride, x_stride, mask, POLICY: tl.constexpr
):
    """dy, x̂ and h = w dy of a tile."""
    dy = load_tile(dy_ptr, row, col, dy_stride, mask, POLICY)
    x_hat = load_tile(x_ptr, row, col, x_stride, mask, POLICY) * rstd
    return dy, x_hat, dy * tl.load(w_ptr + col, mask=col < n, other=0.0).to(dy.dtype)


@keeps_compiled
@triton.jit
def rms_norm_backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    rstd_ptr,
    dx_ptr,
    dw_ptr,
    rows,
    n,
    dy_stride,
    x_stride,
    UNIT: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    PARTS: tl.constexpr,
    HOLD: tl.constexpr,
    STAGES: tl.constexpr,
    NEED_DX: tl.constexpr,
    NEED_DW: tl.constexpr,
    ATOMIC: tl.constexpr,
):
    """dx = rstd (w dy − x̂ mean(w dy x̂)) with x̂ = x rstd, and this program's share of Σ dy x̂.

    Each program takes ROWS rows, skips those of the other programs, and so on to the end. What it
    does not HOLD until the mean is known it reads again.

    Args:
        dy_ptr, x_ptr: rows × n at row strides dy_stride and x_stride, read.
        w_ptr: n elements, read.
        rstd_ptr: one cell a row, read.
        dx_ptr: rows × n, written if NEED_DX.
        dw_ptr: a row of n cells for each program, written if NEED_DW; with ATOMIC one row in all,
            added to.
    """
    n = multiple(n, UNIT)
    dy_stride, x_stride = multiple(dy_stride, UNIT), multiple(x_stride, UNIT)
    FIRST: tl.constexpr = "" if HOLD else "evict_last"
    program = tl.program_id(0).to(tl.int64)
    row = tl.arange(0, ROWS)[:, None]
    zeros = tl.zeros([ROWS, BLOCK], dtype=rstd_ptr.dtype.element_ty)
    dw = ()
    for _ in tl.static_range(PARTS):
        dw = dw + (zeros,)  # noqa: RUF005 (Triton has no starred tuples)
    for start in tl.range(program * ROWS, rows, tl.num_programs(0) * ROWS, num_stages=STAGES):
        live = row < rows - start
        rstd = tl.load(rstd_ptr + start + row, mask=live, other=0.0)
        dy_rows, x_rows = dy_ptr + start * dy_stride, x_ptr + start * x_stride
        product = zeros
        h, x_hat, dw_next = (), (), ()
        for p in tl.static_range(PARTS):
            col = p * BLOCK + tl.arange(0, BLOCK)[None, :]
            mask = inside(live, col, n)
            dy_p, x_hat_p, h_p = load_factors(
                dy_rows, x_rows, w_ptr, rstd, row, col, n, dy_stride, x_stride, mask, FIRST
            )
            product += h_p * x_hat_p
            h, x_hat = h + (h_p,), x_hat + (x_hat_p,)  # noqa: RUF005
            dw_next = dw_next + (dw[p] + dy_p * x_hat_p,)  # noqa: RUF005
        dw = dw_next
        if NEED_DX:
            mean = tl.sum(product, axis=1)[:, None] / n
            for p in tl.static_range(PARTS):
                col = p * BLOCK + tl.arange(0, BLOCK)[None, :]
                mask = inside(live, col, n)
                x_hat_p, h_p = x_hat[p], h[p]
                if not HOLD:
                    dy_p, x_hat_p, h_p = load_factors(
                        dy_rows, x_rows, w_ptr, rstd, row, col, n, dy_stride, x_stride, mask,
                        "evict_first",
                    )  # fmt: skip
                dx = rstd * (h_p - x_hat_p * mean)
                tl.store(dx_ptr + start * n + row * n + col, dx, mask=mask)
    if NEED_DW:
        for p in tl.static_range(PARTS):
            col = p * BLOCK + tl.arange(0, BLOCK)
            total = tl.sum(dw[p], axis=0)
            if ATOMIC:
                tl.atomic_add(dw_ptr + col, total, mask=col < n)
            else:
                tl.store(dw_ptr + program * n + col, total, mask=col < n)


def rms_norm_forward(x: Tensor, w: Tensor, eps: float) -> tuple[Tensor, Tensor]:
    """Launch `rms_norm_kernel`; returns y in x's shape and one rstd a row."""
    n = w.numel()
    x_rows = as_rows(x, n)
    rows, x_stride = x_rows.shape[0], x_rows.stride(0)
    y = torch.empty_like(x, memory_format=torch.contiguous_format)
    rstd = torch.empty(rows, dtype=statistic_dtype(x), device=x.device)
    ROWS, BLOCK, BLOCKS, warps = tile(n)
    with on_device_of(x):
        rms_norm_kernel[(ceil_div(rows, ROWS),)](
            x_rows, w.contiguous(), y, rstd, rows, n, x_stride,
            eps, unit(n, x_stride), ROWS, BLOCK, BLOCKS, num_warps=warps,
        )  # fmt: skip
    return y, rstd


def rms_norm_backward(
    dy: Tensor,
    x: Tensor,
    w: Tensor,
    rstd: Tensor,
    how: str,
    need_dx: bool = True,
    need_dw: bool = True,
) -> tuple[Tensor | None, Tensor | None]:
    """Launch `rms_norm_backward_kernel` and, for dw, `column_sum_kernel`."""
    n = w.numel()
    if too_wide(x, n, sums=1):
        dx, dw = wide_norm_backward(dy, x, w, None, rstd, need_dx, need_dw, how)
        return dx, None if dw is None else column_sum(dw, w.dtype, w.shape)
    dy_rows, x_rows = as_rows(dy, n), as_rows(x, n)
    rows, dy_stride, x_stride = x_rows.shape[0], dy_rows.stride(0), x_rows.stride(0)
    t = persistent_tile(x, w, sums=1)
    programs = min(t.programs, ceil_div(rows, t.ROWS))
    dx = torch.empty_like(x, memory_format=torch.contiguous_format) if need_dx else None
    dw = new_partials(x, programs, n, w.dtype, how) if need_dw else None
    with on_device_of(x):
        rms_norm_backward_kernel[(programs,)](
            dy_rows, x_rows, w.contiguous(), rstd, dx, dw,
            rows, n, dy_stride, x_stride, unit(n, dy_stride, x_stride),
            t.ROWS, t.BLOCK, t.PARTS, t.HOLD, t.STAGES, need_dx, need_dw, how == "atomic",
            num_warps=t.warps,
        )  # fmt: skip
    return dx, None if dw is None else column_sum(dw, w.dtype, w.shape)


@keeps_signature
class RMSNorm(torch.autograd.Function):
    """The graph node of `rms_norm`. Saves x, w and rstd: one number a row spares a pass over x."""

    @staticmethod
    def forward(x: Tensor, w: Tensor, eps: float, dw: str) -> tuple[Tensor, Tensor]:
        return rms_norm_forward(x, w, eps)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        x, w, _, ctx.how = inputs
        _, rstd = output
        ctx.mark_non_differentiable(rstd)
        ctx.set_materialize_grads(False)  # else zeros are filled in for what has no gradient
        ctx.save_for_backward(x, w, rstd)

    @staticmethod
    def backward(
        ctx: Any, dy: Tensor | None, _drstd: None
    ) -> tuple[Tensor | None, Tensor | None, None, None]:
        if dy is None:
            return None, None, None, None
        x, w, rstd = ctx.saved_tensors
        need_dx, need_dw, *_ = ctx.needs_input_grad
        dx, dw = first_order(rms_norm_backward, dy, x, w, rstd, ctx.how, need_dx, need_dw)
        return dx, dw, None, None


def rms_norm(
    x: Tensor,
    weight: Tensor,
    eps: float | None = None,
    dw: Literal["partials", "atomic"] = "partials",
) -> Tensor:
    r"""Root-mean-square normalisation over the trailing dimensions, differentiable once.

    With $\hat x = x\,r$ and $r = (\operatorname{mean}(x^2) + \epsilon)^{-1/2}$ for each row:

    $$y = w\,\hat x, \qquad dx = r\,(w\,dy - \hat x\,\operatorname{mean}(w\,dy\,\hat x)), \qquad
    dw = \sum_\text{rows} dy\,\hat x$$

    Args:
        x: (..., *weight.shape), any layout, fp16, bf16, fp32 or fp64.
        weight: w; its shape says which trailing dimensions make a row. Any of these dtypes.
        eps: added under the root; `None` means `torch.finfo(x.dtype).eps`, as in
            `torch.nn.functional.rms_norm`.
        dw: how programs add up dw. "partials": each writes a row of its own and a second kernel
            adds the rows, the same bits on every run. "atomic": all add into one row, in the order
            in which they happen to finish.

    Returns:
        y, contiguous, of x's shape and dtype. Statistics and dw are fp32, for fp64 fp64, and dw
        is rounded to weight's dtype at the end. Inside autocast, half-precision arguments are cast
        to fp32 first.

    Raises:
        TypeError: x or weight is no floating tensor.
        ValueError: x or weight is where no kernel can run, x does not end in weight's shape, or
            dw is unknown.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019 (arXiv:1910.07467).
    """
    check_tensors("rms_norm", x=x, weight=weight)
    check_trailing("rms_norm", x, weight)
    check_how("rms_norm", dw)
    x, weight = autocast_to_fp32(x, weight)
    eps = torch.finfo(x.dtype).eps if eps is None else eps
    y, _ = RMSNorm.apply(x, weight, eps, dw)
    return y
