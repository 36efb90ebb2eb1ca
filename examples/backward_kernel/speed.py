# needs: gpu
"""What one kernel gains over the chain of tensor operations that it replaces."""

# %% setup
import math

import torch
from triton.testing import do_bench

from gradkernels.gelu import gelu_backward

n = 2**27
x = torch.randn(n, device="cuda", dtype=torch.bfloat16)
dy = torch.randn_like(x)


def placeholder(dy, x):
    cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return dy * (cdf + x * pdf)


# %% rates tags=["measured"]
# Three tensors have to move, whatever the method: dy and x in, dx out.
bytes_moved = 3 * x.numel() * x.element_size()
ways = {
    "placeholder": lambda: placeholder(dy, x),
    "eager": lambda: torch.ops.aten.gelu_backward(dy, x),
    "kernel": lambda: gelu_backward(dy, x),
    "add": lambda: torch.add(x, dy),
}
rates = {
    name: bytes_moved / do_bench(way, return_mode="median") / 1e6 for name, way in ways.items()
}
for name, rate in rates.items():
    print(f"{name}: {rate:.0f} GB/s")
print(f"times faster: {rates['kernel'] / rates['placeholder']:.1f}")
