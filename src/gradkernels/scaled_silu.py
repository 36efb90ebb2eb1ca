"""Scaled SiLU: an elementwise map whose parameter is one scalar, so that its gradient is a sum."""

from typing import Any, Literal

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._arguments import check_how, check_tensors
from gradkernels._column_sum import column_sum, new_partials
from gradkernels._launch import dense, laid_out_like, on_device_of, widen
from gradkernels._node import first_order, keeps_signature

BLOCK = 1024
BACKWARD_BLOCK = 8192  # larger, so that there are few sums to add up


@triton.jit
def scaled_silu_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = w x σ(x).

    Args:
        x_ptr: n elements, read.
        w_ptr: one element, read by every program.
        y_ptr: n elements, written.
    """
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    w = tl.load(w_ptr).to(x.dtype)
    tl.store(y_ptr + offsets, w * x * tl.sigmoid(x), mask=mask)


@triton.jit
def scaled_silu_backward_kernel(
    dy_ptr,
    x_ptr,
    w_ptr,
    dx_ptr,
    dw_ptr,
    n,
    BLOCK: tl.constexpr,
    NEED_DX: tl.constexpr,
    NEED_DW: tl.constexpr,
    ATOMIC: tl.constexpr,
):
    """dx = dy w (σ + x σ (1 − σ)) and, of this block, Σ dy x σ.

    Args:
        dy_ptr, x_ptr: n elements each, read.
        w_ptr: one element, read.
        dx_ptr: n elements, written if NEED_DX.
        dw_ptr: one cell a block, written if NEED_DW; with ATOMIC one cell in all, added to.
    """
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = widen(tl.load(dy_ptr + offsets, mask=mask, other=0.0))
    x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    sigmoid = tl.sigmoid(x)
    silu = x * sigmoid
    if NEED_DX:
        w = tl.load(w_ptr).to(x.dtype)
        dx = dy * w * (sigmoid + silu * (1.0 - sigmoid))
        tl.store(dx_ptr + offsets, dx, mask=mask)
    if NEED_DW:
        dw = tl.sum(dy * silu, axis=0)
        if ATOMIC:
            tl.atomic_add(dw_ptr, dw)
        else:
            tl.store(dw_ptr + tl.program_id(0), dw)


def scaled_silu_forward(x: Tensor, w: Tensor) -> Tensor:
    """Launch `scaled_silu_kernel` over a dense `x`."""
    y = torch.empty_like(x)
    n = x.numel()
    with on_device_of(x):
        scaled_silu_kernel[(triton.cdiv(n, BLOCK),)](x, w, y, n, BLOCK)
    return y


def scaled_silu_backward(
    dy: Tensor, x: Tensor, w: Tensor, how: str, need_dx: bool = True, need_dw: bool = True
) -> tuple[Tensor | None, Tensor | None]:
    """Launch `scaled_silu_backward_kernel` over a dense `x`; `dy` may have any layout."""
    dy = laid_out_like(dy, x)
    dx = torch.empty_like(x) if need_dx else None
    n = x.numel()
    blocks = triton.cdiv(n, BACKWARD_BLOCK)
    cells = new_partials(x, blocks, 1, w.dtype, how) if need_dw else None
    with on_device_of(x):
        scaled_silu_backward_kernel[(blocks,)](
            dy, x, w, dx, cells, n,
            BACKWARD_BLOCK, need_dx, need_dw, how == "atomic", num_warps=8,
        )  # fmt: skip
    return dx, None if cells is None else column_sum(cells, w.dtype, w.shape)


@keeps_signature
class ScaledSiLU(torch.autograd.Function):
    """The graph node of `scaled_silu`. Saves its inputs and recomputes σ(x), which costs less."""

    @staticmethod
    def forward(x: Tensor, w: Tensor, dw: str) -> Tensor:
        return scaled_silu_forward(x, w)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, str], output: Tensor) -> None:
        x, w, ctx.how = inputs
        ctx.save_for_backward(x, w)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        x, w = ctx.saved_tensors
        need_dx, need_dw, _ = ctx.needs_input_grad
        dx, dw = first_order(scaled_silu_backward, dy, x, w, ctx.how, need_dx, need_dw)
        return dx, dw, None  # one for each argument of forward: how dw is summed has no gradient


def scaled_silu(x: Tensor, w: Tensor, dw: Literal["partials", "atomic"] = "partials") -> Tensor:
    r"""SiLU times one learnable scalar, differentiable once.

    $$y = w\,x\,\sigma(x), \qquad dx = dy\,w\,(\sigma + x\,\sigma\,(1 - \sigma)), \qquad
    dw = \sum_i dy_i\,x_i\,\sigma(x_i)$$

    Args:
        x: any shape and layout, fp16, bf16, fp32 or fp64.
        w: the scalar, of shape () or (1,), of any of these dtypes.
        dw: how programs add up dw. "partials": each writes a cell of its own and a second kernel
            adds the cells, the same bits on every run. "atomic": all add to one cell, in the order
            in which they happen to finish.

    Returns:
        y, of x's shape, dtype and (where x is dense) strides. Computed in fp32, for fp64 in fp64,
        and so is dw before it is rounded to w's dtype.

    Raises:
        TypeError: x or w is no floating tensor.
        ValueError: x or w is where no kernel can run, w is not one element, or dw is unknown.

    Source: SiLU is `torch.nn.functional.silu`; Elfwing, Uchibe and Doya, 2017 (arXiv:1702.03118).
    """
    check_tensors("scaled_silu", x=x, w=w)
    if w.shape not in ((), (1,)):
        raise ValueError(f"scaled_silu: w has shape {tuple(w.shape)}; expected () or (1,)")
    check_how("scaled_silu", dw)
    return ScaledSiLU.apply(dense(x), w, dw)
