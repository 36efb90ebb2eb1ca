"""`tl.dot` as these kernels mean it."""

import triton
import triton.language as tl

from gradkernels._launch import INTERPRETED, widen


@triton.jit
def dot(a, b, c):
    """C + A B in C's dtype; fp32 operands are not rounded to TF32, which "ieee" forbids."""
    return tl.dot(a, b, c, input_precision="ieee", out_dtype=c.dtype)


@triton.jit
def dot_of_widened(a, b, c):
    """The same, exactly: fp32 holds the product of any two bf16 or fp16 numbers."""
    return tl.dot(widen(a), widen(b), c, input_precision="ieee", out_dtype=c.dtype)


# The interpreter's tl.dot multiplies the bit patterns of bf16 as integers.
if INTERPRETED:
    dot = dot_of_widened
