# needs: gpu 80GB
# time limit: 600 s
"""Time over size, from a thousand elements to a quarter of a billion, beside eager."""

# %% setup
import random
from statistics import median

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from triton.testing import do_bench

from _timing import leaf
from gradkernels.gelu import gelu
from gradkernels.rms_norm import rms_norm

random.seed(0)
torch.manual_seed(0)
SIZES = [2**k for k in range(10, 29, 2)]
WIDTH = 1024  # of a row, for RMSNorm


def microseconds(op, *inputs):
    """Forward and backward as a training loop calls them, the host included."""
    dy = torch.randn_like(inputs[0])

    def step():
        torch.autograd.grad(op(*inputs), inputs, dy)

    return 1e3 * do_bench(step, warmup=10, rep=50, return_mode="median")


def torch_rms_norm(x, w):
    return F.rms_norm(x, w.shape, w, 1e-6)


# %% times tags=["measured"]
weight = leaf(WIDTH)
SERIES = {
    "gelu, ours": lambda n: microseconds(gelu, leaf(n)),
    "gelu, eager": lambda n: microseconds(F.gelu, leaf(n)),
    "rms_norm, ours": lambda n: microseconds(rms_norm, leaf(n // WIDTH, WIDTH), weight),
    "rms_norm, eager": lambda n: microseconds(torch_rms_norm, leaf(n // WIDTH, WIDTH), weight),
}
points = [(name, n) for name in SERIES for n in SIZES]
took = {point: [] for point in points}
# A host is slow for seconds at a time: each round takes all points, in an order of its own.
for _ in range(7):
    for name, n in random.sample(points, len(points)):
        took[name, n].append(SERIES[name](n))
times = {name: [median(took[name, n]) for n in SIZES] for name in SERIES}
print("microseconds, forward and backward")
for name, series in times.items():
    for n, time in zip(SIZES, series, strict=True):
        print(f"{name}, {n.bit_length() - 1} doublings: {time:.0f}")

# %% plot tags=["measured"]
figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
for (name, series), style in zip(times.items(), ("-", "--", "-.", ":"), strict=True):
    axes.loglog(SIZES, series, style, marker=".", label=name)
axes.set_xlabel("elements")
axes.set_ylabel("forward and backward, µs")
figure.legend(loc="outside upper center", ncols=2)
