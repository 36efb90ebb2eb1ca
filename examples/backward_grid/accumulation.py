# needs: torch
"""Add 32,768 contributions of 1e-3, one at a time, in three dtypes, and watch the sum stop."""

# %% sums
import matplotlib.pyplot as plt
import torch

STEPS = 32_768
CONTRIBUTION = 1e-3


def running_sums(dtype):
    """The total after every step, with total and contribution in one dtype."""
    step = torch.tensor(CONTRIBUTION, dtype=dtype)
    total = torch.zeros((), dtype=dtype)
    sums = torch.empty(STEPS, dtype=torch.float32)
    for i in range(STEPS):
        total += step
        sums[i] = total
    return sums


sums = {dtype: running_sums(dtype) for dtype in (torch.bfloat16, torch.float16, torch.float32)}
print(f"true sum: {STEPS * CONTRIBUTION:.3f}")
for dtype, values in sums.items():
    print(f"{dtype}: {values[-1].item():.4f}")

# %% stall
for dtype in (torch.bfloat16, torch.float16):
    total = sums[dtype][-1].to(dtype)
    steps = int((sums[dtype] == total).nonzero()[0]) + 1
    gap = torch.nextafter(total, torch.tensor(torch.inf, dtype=dtype)) - total
    print(f"{dtype} stands still at {total.item()} from step {steps} of {STEPS}")
    print(f"  next value is {gap.item():.7f} away, half of that is {gap.item() / 2:.7f}")
    print(f"  {CONTRIBUTION} is less: {gap.item() / 2 > CONTRIBUTION}")

# %% steps
print("step    " + "".join(f"{str(dtype).removeprefix('torch.'):>10}" for dtype in sums))
for step in [2**k for k in range(0, 16, 3)]:
    print(f"{step:<8}" + "".join(f"{values[step - 1]:>10.4f}" for values in sums.values()))

# %% plot
figure, axes = plt.subplots(figsize=(4.5, 3.4), layout="constrained")
for (dtype, values), style in zip(sums.items(), ("-", "--", ":"), strict=True):
    steps = torch.arange(1, STEPS + 1)
    axes.loglog(steps, values, style, label=str(dtype).removeprefix("torch."))
axes.set_xlabel("contributions of 1e-3 added")
axes.set_ylabel("running sum")
axes.legend()

# %% blocks
contributions = torch.full((STEPS,), CONTRIBUTION)
block_sums = contributions.view(-1, 1024).sum(dim=1)
total = torch.zeros((), dtype=torch.bfloat16)
for block_sum in block_sums:
    total += block_sum.bfloat16()
print(f"blocks of 1024 in fp32, then {len(block_sums)} additions in bfloat16: {total.item()}")
print(f"everything in fp32, rounded to bfloat16 once: {block_sums.sum().bfloat16().item()}")
