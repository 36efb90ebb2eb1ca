"""GELU: the elementwise map, forward and backward."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._launch import (
    check_tensors,
    dense,
    first_order,
    laid_out_like,
    on_device_of,
    widen,
)

BLOCK = 1024


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = x Φ(x).

    Args:
        x_ptr: n elements, read.
        y_ptr: n elements, written.
    """
    SQRT_HALF: tl.constexpr = 0.7071067811865476
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    cdf = 0.5 * (1.0 + tl.erf(x * SQRT_HALF))
    tl.store(y_ptr + offsets, x * cdf, mask=mask)


@triton.jit
def gelu_backward_kernel(dy_ptr, x_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    """dx = dy (Φ(x) + x φ(x)).

    Args:
        dy_ptr: n elements, read.
        x_ptr: n elements, read.
        dx_ptr: n elements, written.
    """
    SQRT_HALF: tl.constexpr = 0.7071067811865476
    SQRT_HALF_OVER_PI: tl.constexpr = 0.3989422804014327
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = widen(tl.load(dy_ptr + offsets, mask=mask, other=0.0))
    x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    cdf = 0.5 * (1.0 + tl.erf(x * SQRT_HALF))
    pdf = SQRT_HALF_OVER_PI * tl.exp(-0.5 * x * x)
    tl.store(dx_ptr + offsets, dy * (cdf + x * pdf), mask=mask)


def gelu_forward(x: Tensor) -> Tensor:
    """Launch `gelu_kernel` over a dense `x`."""
    y = torch.empty_like(x)
    n = x.numel()
    with on_device_of(x):
        gelu_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK)
    return y


def gelu_backward(dy: Tensor, x: Tensor) -> Tensor:
    """Launch `gelu_backward_kernel` over a dense `x`; `dy` may have any layout."""
    dy = laid_out_like(dy, x)
    dx = torch.empty_like(x)
    n = x.numel()
    with on_device_of(x):
        gelu_backward_kernel[(triton.cdiv(n, BLOCK),)](dy, x, dx, n, BLOCK)
    return dx


class GELU(torch.autograd.Function):
    """The graph node of `gelu`. Saves x, from which both factors of the derivative follow."""

    @staticmethod
    def forward(x: Tensor) -> Tensor:
        return gelu_forward(x)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, dy: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return first_order(gelu_backward, dy, x)


def gelu(x: Tensor) -> Tensor:
    r"""Gaussian error linear unit, differentiable once.

    $$y = x\,\Phi(x), \qquad dx = dy\,(\Phi(x) + x\,\varphi(x))$$

    Φ and φ are the standard normal distribution and its density.

    Args:
        x: any shape and layout, fp16, bf16, fp32 or fp64.

    Returns:
        y, of x's shape, dtype and (where x is dense) strides. Computed in fp32, for fp64 in fp64.

    Raises:
        TypeError: x is no floating tensor.
        ValueError: x is where no kernel can run.

    Source: Hendrycks and Gimpel, "Gaussian Error Linear Units (GELUs)", 2016 (arXiv:1606.08415);
    the exact form, which is `torch.nn.functional.gelu(x, approximate="none")`.
    """
    check_tensors("gelu", x=x)
    return GELU.apply(dense(x))
