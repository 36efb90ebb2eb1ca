"""Cross-entropy from logits: one number a row is saved, and the logits are left as they are."""

from typing import Any, Literal

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._arguments import autocast_to_fp32, check_index, check_tensors
from gradkernels._compiled import keeps_compiled
from gradkernels._launch import as_rows, ceil_div, on_device_of, statistic_dtype, widen
from gradkernels._node import first_order, keeps_signature

BLOCK = 4096
BACKWARD_BLOCK = 2048


@keeps_compiled
@triton.jit
def cross_entropy_kernel(
    x_ptr, target_ptr, loss_ptr, lse_ptr, n, x_stride, ignore_index, BLOCK: tl.constexpr
):
    """lse = log Σ exp(x) and loss = lse − x[target], for one row.

    The row is read once: when a block brings a larger maximum, the sum so far is scaled to it.

    Args:
        x_ptr: rows × n at a row stride of x_stride, read.
        target_ptr: one class a row, read; a row whose class is ignore_index has loss 0, and one
            whose class is none of 0 … n − 1 has loss NaN.
        loss_ptr: one cell a row, written in its own dtype.
        lse_ptr: one fp32 (fp64) cell a row, written.
    """
    LOG2_E: tl.constexpr = 1.4426950408889634
    row = tl.program_id(0).to(tl.int64)
    x_ptr += row * x_stride
    m = tl.full([], float("-inf"), dtype=lse_ptr.dtype.element_ty)
    total = tl.full([], 0.0, dtype=lse_ptr.dtype.element_ty)
    for start in range(0, n, BLOCK):
        col = start + tl.arange(0, BLOCK)
        x = widen(tl.load(x_ptr + col, mask=col < n, other=float("-inf")))
        larger = tl.maximum(m, tl.max(x, axis=0))
        # While all is -inf, any finite number keeps -inf − (-inf) out.
        base = tl.where(larger == float("-inf"), 0.0, larger)
        total *= tl.exp2((m - base) * LOG2_E)
        total += tl.sum(tl.exp2((x - base) * LOG2_E), axis=0)
        m = larger
    lse = m + tl.log(total)
    target = tl.load(target_ptr + row)
    inside = (target >= 0) & (target < n)
    picked = widen(tl.load(x_ptr + target, mask=inside, other=float("nan")))
    tl.store(lse_ptr + row, lse)
    tl.store(loss_ptr + row, tl.where(target == ignore_index, 0.0, lse - picked))


@keeps_compiled
@triton.jit
def reduce_losses_kernel(
    loss_ptr,
    target_ptr,
    reduced_ptr,
    count_ptr,
    rows,
    ignore_index,
    MEAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """The sum of the rows' losses or, if MEAN, their mean over the rows not ignored; one program.

    Args:
        loss_ptr, target_ptr: one cell a row each, read.
        reduced_ptr: one element, written in its own dtype.
        count_ptr: one fp32 (fp64) cell, written: how many rows are not ignored.
    """
    total = tl.zeros([BLOCK], dtype=loss_ptr.dtype.element_ty)
    count = tl.zeros([BLOCK], dtype=tl.int64)
    for start in range(0, rows, BLOCK):
        row = start + tl.arange(0, BLOCK)
        total += tl.load(loss_ptr + row, mask=row < rows, other=0.0)
        target = tl.load(target_ptr + row, mask=row < rows, other=ignore_index)
        count += (target != ignore_index).to(tl.int64)
    reduced = tl.sum(total, axis=0)
    live = tl.sum(count, axis=0).to(total.dtype)
    tl.store(count_ptr, live)
    if MEAN:
        reduced /= live
    tl.store(reduced_ptr, reduced)


@keeps_compiled
@triton.jit
def cross_entropy_backward_kernel(
    dloss_ptr,
    x_ptr,
    target_ptr,
    lse_ptr,
    count_ptr,
    dx_ptr,
    n,
    dloss_stride,
    x_stride,
    ignore_index,
    MEAN: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """dx = (exp(x − lse) − onehot(target)) dloss, divided by count if MEAN, for a block of a row.

    Args:
        dloss_ptr: one element (dloss_stride 0) or one a row, read.
        x_ptr: rows × n at a row stride of x_stride, read.
        target_ptr, lse_ptr: one cell a row each, read; an ignored row gets dx 0.
        count_ptr: one cell, read if MEAN.
        dx_ptr: rows × n, written.
    """
    LOG2_E: tl.constexpr = 1.4426950408889634
    blocks = tl.cdiv(n, BLOCK)
    row = tl.program_id(0).to(tl.int64) // blocks
    col = tl.program_id(0) % blocks * BLOCK + tl.arange(0, BLOCK)
    x = widen(tl.load(x_ptr + row * x_stride + col, mask=col < n, other=float("-inf")))
    lse = tl.load(lse_ptr + row)
    target = tl.load(target_ptr + row)
    scale = tl.load(dloss_ptr + row * dloss_stride).to(lse.dtype)
    if MEAN:
        scale /= tl.load(count_ptr)
    scale = tl.where((target >= 0) & (target < n), scale, float("nan"))
    p = tl.exp2((x - lse) * LOG2_E)
    dx = tl.where(target == ignore_index, 0.0, (p - tl.where(col == target, 1.0, 0.0)) * scale)
    tl.store(dx_ptr + row * n + col, dx, mask=col < n)


def cross_entropy_forward(
    x: Tensor, target: Tensor, ignore_index: int, reduction: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Launch the forward kernels over 2-D logits; returns the loss, one lse a row, and count."""
    x = as_rows(x, x.shape[1])
    rows, n = x.shape
    lse = torch.empty(rows, dtype=statistic_dtype(x), device=x.device)
    losses = torch.empty_like(lse, dtype=x.dtype if reduction == "none" else lse.dtype)
    count = torch.empty((), dtype=lse.dtype, device=x.device)
    with on_device_of(x):
        cross_entropy_kernel[(rows,)](x, target, losses, lse, n, x.stride(0), ignore_index, BLOCK)
        if reduction == "none":
            return losses, lse, count
        loss = torch.empty((), dtype=x.dtype, device=x.device)
        reduce_losses_kernel[(1,)](
            losses, target, loss, count, rows, ignore_index, reduction == "mean", 1024
        )
    return loss, lse, count


def cross_entropy_backward(
    dloss: Tensor,
    x: Tensor,
    target: Tensor,
    lse: Tensor,
    count: Tensor,
    ignore_index: int,
    reduction: str,
) -> Tensor:
    """Launch `cross_entropy_backward_kernel`; `dloss` is one element or one a row."""
    x = as_rows(x, x.shape[1])
    rows, n = x.shape
    dx = torch.empty(rows, n, dtype=x.dtype, device=x.device)
    dloss_stride = dloss.stride(0) if dloss.ndim else 0
    with on_device_of(x):
        cross_entropy_backward_kernel[(rows * ceil_div(n, BACKWARD_BLOCK),)](
            dloss, x, target, lse, count, dx, n, dloss_stride, x.stride(0), ignore_index,
            reduction == "mean", BACKWARD_BLOCK,
        )  # fmt: skip
    return dx


@keeps_signature
class CrossEntropy(torch.autograd.Function):
    """The graph node of `cross_entropy`. Saves the logits, untouched, and one lse a row."""

    @staticmethod
    def forward(
        x: Tensor, target: Tensor, ignore_index: int, reduction: str
    ) -> tuple[Tensor, Tensor, Tensor]:
        return cross_entropy_forward(x, target, ignore_index, reduction)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        x, target, ctx.ignore_index, ctx.reduction = inputs
        _, lse, count = output
        ctx.mark_non_differentiable(lse, count)
        ctx.set_materialize_grads(False)  # else zeros are filled in for what has no gradient
        ctx.save_for_backward(x, target, lse, count)

    @staticmethod
    def backward(
        ctx: Any, dloss: Tensor | None, _dlse: None, _dcount: None
    ) -> tuple[Tensor | None, None, None, None]:
        if dloss is None:
            return None, None, None, None
        dx = first_order(
            cross_entropy_backward, dloss, *ctx.saved_tensors, ctx.ignore_index, ctx.reduction
        )
        return dx, None, None, None


def cross_entropy(
    logits: Tensor,
    target: Tensor,
    ignore_index: int = -100,
    reduction: Literal["mean", "sum", "none"] = "mean",
) -> Tensor:
    r"""Cross-entropy of class-index targets, differentiable once in the logits.

    With $\ell_i = \log \sum_j e^{x_{ij}}$ and N rows that are not ignored:

    $$\text{loss}_i = \ell_i - x_{i,t_i}, \qquad
    dx_{ij} = (e^{x_{ij} - \ell_i} - [j = t_i])\,\text{dloss}_i / N$$

    (N only for the mean.)

    Args:
        logits: x, (C,), (N, C) or (N, C, d₁, …), any layout, fp16, bf16, fp32 or fp64. Read, never
            written. Where classes are not adjacent in memory they are copied so that they are.
        target: t, classes 0 … C − 1 or ignore_index, of the shape of logits without C; int64 or
            int32. On a GPU a class outside makes its row's loss and gradient NaN: raising would
            have to wait for the device. On the CPU it raises.
        ignore_index: the class of the rows to leave out, which get gradient 0.
        reduction: "mean" over the rows not ignored (NaN if there are none), "sum", or "none".

    Returns:
        The loss in logits' dtype, a scalar or, for "none", of target's shape. Computed in fp32, for
        fp64 in fp64. Inside autocast, half-precision logits are cast to fp32 first.

    Raises:
        TypeError: logits is no floating tensor or target no integer tensor.
        ValueError: an argument is where no kernel can run, shapes don't fit, or reduction is
            unknown.
        IndexError: on the CPU, a class is outside.

    Source: `torch.nn.functional.cross_entropy`; the running maximum is that of Milakov and
    Gimelshein, "Online normalizer calculation for softmax", 2018 (arXiv:1805.02867).
    """
    check_tensors("cross_entropy", logits=logits)
    check_index("cross_entropy", "target", target, "logits", logits)
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(
            f'cross_entropy: reduction is {reduction!r}; expected "mean", "sum" or "none"'
        )
    classes = min(1, logits.ndim - 1)
    if logits.ndim == 0 or target.shape != logits.shape[:classes] + logits.shape[classes + 1 :]:
        raise ValueError(
            f"cross_entropy: target has shape {tuple(target.shape)} and logits "
            f"{tuple(logits.shape)}; expected logits (C,), (N, C) or (N, C, d1, ...) and target "
            "of that shape without C"
        )
    n = logits.shape[classes]
    if not target.is_cuda:
        _check_classes(target, n, ignore_index)
    (logits,) = autocast_to_fp32(logits)
    x = logits.movedim(classes, -1).reshape(target.numel(), n)
    loss, _, _ = CrossEntropy.apply(x, target.reshape(-1), ignore_index, reduction)
    return loss.view(target.shape) if reduction == "none" else loss


def _check_classes(target: Tensor, n: int, ignore_index: int) -> None:
    bad = target[(target != ignore_index) & ((target < 0) | (target >= n))]
    if bad.numel():
        raise IndexError(
            f"cross_entropy: target holds class {bad[0].item()}; expected 0 to {n - 1} or "
            f"ignore_index, {ignore_index}"
        )
