"""GELU: the elementwise map, forward and backward."""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._arguments import check_tensors
from gradkernels._launch import dense, laid_out_like, on_device_of, widen
from gradkernels._node import first_order, keeps_signature

BLOCK = 1024


@triton.jit
def normal(x, EXACT: tl.constexpr):
    """Φ(x) and φ(x): the standard normal distribution and its density.

    EXACT, for fp32 and fp64, is to the last bits. In half precision the arithmetic of `tl.erf`
    takes longer than the memory, and the polynomial of Abramowitz and Stegun 26.2.17, off by at
    most 7.5e-8, is far below a rounding; it needs the one exponential that is in φ anyway.
    """
    pdf = 0.3989422804014327 * tl.exp2(-0.7213475204444817 * x * x)  # e^(−x²/2) / √(2π)
    if EXACT:
        return 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)), pdf
    else:  # noqa: RET505 (Triton compiles both sides of an if without else)
        r = tl.rsqrt(1.0 + 0.2316419 * tl.abs(x))
        t = r * r  # two instructions where the division 1 / (1 + p |x|) takes seven
        poly = 1.781477937 + t * (-1.821255978 + t * 1.330274429)
        tail = pdf * t * (0.319381530 + t * (-0.356563782 + t * poly))
        return tl.where(x < 0, tail, 1.0 - tail), pdf


@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """y = x Φ(x).

    Args:
        x_ptr: n elements, read.
        y_ptr: n elements, written.
    """
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    cdf, _ = normal(x, x_ptr.dtype.element_ty.primitive_bitwidth > 16)
    tl.store(y_ptr + offsets, x * cdf, mask=mask)


@triton.jit
def gelu_backward_kernel(dy_ptr, x_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    """dx = dy (Φ(x) + x φ(x)).

    Args:
        dy_ptr: n elements, read.
        x_ptr: n elements, read.
        dx_ptr: n elements, written.
    """
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = widen(tl.load(dy_ptr + offsets, mask=mask, other=0.0))
    x = widen(tl.load(x_ptr + offsets, mask=mask, other=0.0))
    cdf, pdf = normal(x, x_ptr.dtype.element_ty.primitive_bitwidth > 16)
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


@keeps_signature
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
    the exact form, which is `torch.nn.functional.gelu(x, approximate="none")`. Φ in half precision:
    Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, formula 26.2.17.
    """
    check_tensors("gelu", x=x)
    return GELU.apply(dense(x))
