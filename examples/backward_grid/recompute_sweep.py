# needs: gpu
"""Sweep the cost of recomputing one element and find where saving it becomes cheaper."""

# %% kernels
from itertools import pairwise

import torch
import triton
import triton.language as tl
from triton.testing import do_bench

torch.manual_seed(0)
BLOCK_SIZE = 2048


@triton.jit
def feature(x, steps, SPECIAL: tl.constexpr):
    """A number made from x by `steps` operations: 8 FMAs (16 flops) or one exp2 a step."""
    f = x
    for _step in range(steps):
        if SPECIAL:
            f = tl.exp2(-f)
        else:
            for _fma in tl.static_range(8):
                f = f * 0.5 + x
    return f


@triton.jit(do_not_specialize=["steps"])
def forward_kernel(
    x_ptr,
    y_ptr,
    saved_ptr,
    n,
    steps,
    SPECIAL: tl.constexpr,
    SAVE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    f = feature(x, steps, SPECIAL)
    tl.store(y_ptr + offsets, x * f, mask=mask)
    if SAVE:
        tl.store(saved_ptr + offsets, f, mask=mask)


@triton.jit(do_not_specialize=["steps"])
def backward_kernel(
    dy_ptr,
    x_ptr,
    saved_ptr,
    dx_ptr,
    n,
    steps,
    SPECIAL: tl.constexpr,
    SAVE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    if SAVE:
        f = tl.load(saved_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    else:
        f = feature(x, steps, SPECIAL)
    tl.store(dx_ptr + offsets, dy * (x + f), mask=mask)


# %% agree
def run(x, dy, steps, special, save):
    n = x.numel()
    y, dx = torch.empty_like(x), torch.empty_like(x)
    saved = torch.empty_like(x) if save else x
    grid = (triton.cdiv(n, BLOCK_SIZE),)
    options = {"SPECIAL": special, "SAVE": save, "BLOCK": BLOCK_SIZE}
    forward_kernel[grid](x, y, saved, n, steps, **options)
    backward_kernel[grid](dy, x, saved, dx, n, steps, **options)
    return dx


x = torch.randn(2**16 + 1, device="cuda", dtype=torch.bfloat16)
dy = torch.randn_like(x)
for special in (False, True):
    apart = run(x, dy, 3, special, save=True) - run(x, dy, 3, special, save=False)
    scale = run(x, dy, 3, special, save=False).float().abs() + dy.float().abs()
    print(
        f"special={special}: saved and recomputed agree: {bool((apart.abs() <= scale / 50).all())}"
    )

# %% points tags=["measured"]
x = torch.randn(2**26, device="cuda", dtype=torch.bfloat16)
dy = torch.randn_like(x)
UNITS = {
    "fp32": (False, 16, (0, 2, 4, 6, 7, 8, 9, 10, 12, 16, 24)),
    "special": (True, 1, (0, 2, 4, 5, 6, 7, 8, 10, 12, 16)),
}


def picoseconds(x, dy, steps, special, save):
    """Forward and backward together, for each element."""

    def call():
        run(x, dy, steps, special, save)

    return do_bench(call, warmup=10, rep=60, return_mode="median") * 1e9 / x.numel()


def sweep(x, dy):
    """For each unit, (operations, time when saving, time when recomputing)."""
    return {
        unit: [
            (
                count * operations,
                *(picoseconds(x, dy, count, special, save) for save in (True, False)),
            )
            for count in steps
        ]
        for unit, (special, operations, steps) in UNITS.items()
    }


points = sweep(x, dy)
print(f"{'unit':<8} {'operations':>10} {'save ps':>9} {'recompute ps':>13}")
for unit, rows in points.items():
    for operations, save, recompute in rows:
        print(f"{unit:<8} {operations:>10} {save:>9.3f} {recompute:>13.3f}")


# %% crossover tags=["measured"]
def measured_crossover(points):
    """Where the line between two neighbouring points crosses zero, or None."""
    for (a, save_a, again_a), (b, save_b, again_b) in pairwise(points):
        before, after = again_a - save_a, again_b - save_b
        if before <= 0 < after:
            return a + (b - a) * -before / (after - before)
    return None


for unit, values in points.items():
    print(f"measured-{unit}: {measured_crossover(values):.3g}")

# %% four-times-the-size tags=["measured"]
x = torch.randn(2**28, device="cuda", dtype=torch.bfloat16)
dy = torch.randn_like(x)
for unit, values in sweep(x, dy).items():
    print(f"measured-{unit}: {measured_crossover(values):.3g}")
