# needs: gpu
# time limit: 300 s
"""What a small call costs on the host, forward and backward, where the GPU has next to no work."""

# %% setup
from statistics import median
from time import perf_counter

import torch
import torch.nn.functional as F

from gradkernels.gelu import gelu
from gradkernels.layer_norm import layer_norm
from gradkernels.rms_norm import rms_norm
from gradkernels.scaled_silu import scaled_silu
from gradkernels.softmax import softmax

torch.manual_seed(0)


def microseconds(op, inputs, calls=300):
    dy = torch.randn_like(inputs[0])
    times = []
    for _ in range(7):  # the first round compiles
        torch.cuda.synchronize()
        start = perf_counter()
        for _ in range(calls):
            torch.autograd.grad(op(*inputs), inputs, dy)
        times.append(1e6 * (perf_counter() - start) / calls)
    return median(times)


def leaf(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)


# %% table tags=["measured"]
x, w, b, s = leaf(8, 256), leaf(256), leaf(256), leaf()
CALLS = {
    "gelu": (gelu, F.gelu, [x]),
    "scaled_silu": (scaled_silu, lambda x, s: s * F.silu(x), [x, s]),
    "rms_norm": (rms_norm, lambda x, w: F.rms_norm(x, w.shape, w), [x, w]),
    "layer_norm": (layer_norm, lambda x, w, b: F.layer_norm(x, w.shape, w, b), [x, w, b]),
    "softmax": (softmax, lambda x: F.softmax(x, dim=-1), [x]),
}
for name, (op, counterpart, inputs) in CALLS.items():
    ours, eager = microseconds(op, inputs), microseconds(counterpart, inputs)
    print(f"{name}: {ours:.0f} µs, eager {eager:.0f} µs")
    print(f"{name} times eager: {ours / eager:.2f}")
