"""The second pass of a parameter's gradient: add up what each program left in a row of its own."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._compiled import keeps_compiled
from gradkernels._launch import ceil_div, on_device_of, power_of_2, statistic_dtype


@keeps_compiled
@triton.jit
def column_sum_kernel(
    partials_ptr, total_ptr, programs, n, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr
):
    """total[j] = Σₚ partials[p, j], each column by one program in one order: the same bits always.

    Args:
        partials_ptr: programs × n, fp32 or fp64, read.
        total_ptr: n elements, written in its own dtype.
    """
    cols = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    total = tl.zeros([BLOCK_P, BLOCK_N], dtype=partials_ptr.dtype.element_ty)
    for start in range(0, programs, BLOCK_P):
        p = start + tl.arange(0, BLOCK_P)
        mask = (p < programs)[:, None] & (cols < n)[None, :]
        total += tl.load(partials_ptr + p.to(tl.int64)[:, None] * n + cols, mask=mask, other=0.0)
    tl.store(total_ptr + cols, tl.sum(total, axis=0), mask=cols < n)


def new_partials(
    x: Tensor, programs: int, n: int, dtype: torch.dtype, how: str = "partials"
) -> Tensor:
    """Where `programs` leave their sums over `x` for each of n columns, for `column_sum`.

    A row each in fp32 (fp64), or in `dtype` what a lone program has, which is the total; one row
    of zeros if `how` is "atomic" and all add to it.
    """
    wide = statistic_dtype(x)
    if how == "atomic":
        return torch.zeros(1, n, dtype=wide, device=x.device)
    return torch.empty(programs, n, dtype=dtype if programs == 1 else wide, device=x.device)


def column_sum(partials: Tensor, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
    """The sum of the rows of `partials`, in `dtype` and `shape`."""
    programs, n = partials.shape
    if programs == 1:
        return (partials if partials.dtype == dtype else partials.to(dtype)).view(shape)
    total = torch.empty(shape, dtype=dtype, device=partials.device)
    if n < 8:  # a lone program has to have all the more rows under way
        BLOCK_N = power_of_2(n, 8)
        BLOCK_P, warps = 8192 // BLOCK_N, 16
    else:
        BLOCK_P = max(8, power_of_2(programs, 256))
        BLOCK_N, warps = 2048 // BLOCK_P, 4
    with on_device_of(partials):
        column_sum_kernel[(ceil_div(n, BLOCK_N),)](
            partials, total, programs, n, BLOCK_P, BLOCK_N, num_warps=warps
        )
    return total
