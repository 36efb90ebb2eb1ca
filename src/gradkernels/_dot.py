"""`tl.dot` as these kernels mean it."""

import triton
import triton.language as tl

from gradkernels._launch import INTERPRETED, widen

# The interpreter's tl.dot multiplies the bit patterns of bf16 as integers. There operands are
# widened first, which changes no product: fp32 holds that of any two bf16 or fp16 numbers.
WIDEN_FIRST = tl.constexpr(INTERPRETED)


@triton.jit
def dot(a, b, c):
    """C + A B in C's dtype; fp32 operands are not rounded to TF32, which "ieee" forbids."""
    if WIDEN_FIRST:
        a = widen(a)
        b = widen(b)
    return tl.dot(a, b, c, input_precision="ieee", out_dtype=c.dtype)
