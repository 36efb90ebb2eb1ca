# needs: gpu
# time limit: 300 s
"""What a small call costs on the host, forward and backward, where the GPU has next to no work."""

# %% setup
import os
import random
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter

import torch
import torch.nn.functional as F

from _timing import leaf
from gradkernels.attention import attention
from gradkernels.cross_entropy import cross_entropy
from gradkernels.gelu import gelu
from gradkernels.layer_norm import layer_norm
from gradkernels.linear import linear
from gradkernels.rms_norm import rms_norm
from gradkernels.scaled_silu import scaled_silu
from gradkernels.softmax import softmax

random.seed(0)
torch.manual_seed(0)


# %% calls
x, w, b, s, matrix = leaf(8, 256), leaf(256), leaf(256), leaf(), leaf(256, 256)
q, k, v = leaf(1, 2, 16, 64), leaf(1, 2, 16, 64), leaf(1, 2, 16, 64)
target = torch.randint(256, (8,), device="cuda")
CALLS = {
    "gelu": ([x], gelu, F.gelu),
    "scaled_silu": ([x, s], scaled_silu, lambda x, s: s * F.silu(x)),
    "rms_norm": ([x, w], rms_norm, lambda x, w: F.rms_norm(x, w.shape, w)),
    "layer_norm": ([x, w, b], layer_norm, lambda x, w, b: F.layer_norm(x, w.shape, w, b)),
    "softmax": ([x], softmax, lambda x: F.softmax(x, dim=-1)),
    "cross_entropy": (
        [x],
        lambda x: cross_entropy(x, target),
        lambda x: F.cross_entropy(x, target),
    ),
    "linear": ([x, matrix], linear, F.linear),
    "attention": ([q, k, v], attention, F.scaled_dot_product_attention),
}
LIGER = {}
if find_spec("liger_kernel"):
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    LIGER = {
        "rms_norm": lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False),
        "layer_norm": lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, 1e-5),
        "softmax": LigerSoftmaxFunction.apply,
    }

# %% rounds
CONTESTANTS = {
    (name, who): (f, inputs)
    for name, (inputs, ours, eager) in CALLS.items()
    for who, f in {"ours": ours, "eager": eager, "liger": LIGER.get(name)}.items()
    if f
}


def stay_on(cores):
    """Keep all threads of this process, autograd's too, on these cores."""
    for thread in Path("/proc/self/task").iterdir():
        os.sched_setaffinity(int(thread.name), cores)


def microseconds(f, inputs, calls=20):
    dy = torch.ones_like(f(*inputs))

    def step():
        torch.autograd.grad(f(*inputs), inputs, dy)

    for _ in range(5):  # the first after another contestant are slower
        step()
    torch.cuda.synchronize()
    start = perf_counter()
    for _ in range(calls):
        step()
    return 1e6 * (perf_counter() - start) / calls


# A backward runs in a thread of its own. Where that has another core, each step wakes that core,
# and the caches of both are cold: how long this takes differs from host to host, and by the minute.
rounds = {}
everywhere = os.sched_getaffinity(0)
for place, cores in {"one core": {max(everywhere)}, "any core": everywhere}.items():
    stay_on(cores)
    # A host is slow for seconds at a time: each round takes all, in an order of its own.
    for _ in range(40):
        for contestant in random.sample(list(CONTESTANTS), len(CONTESTANTS)):
            took = microseconds(*CONTESTANTS[contestant])
            rounds.setdefault((place, *contestant), []).append(took)
times = {contestant: median(took) for contestant, took in rounds.items()}

# %% table tags=["measured"]
for place in ("one core", "any core"):
    for name in CALLS:
        ours, eager = times[place, name, "ours"], times[place, name, "eager"]
        print(f"{name}, {place}: {ours:.0f} µs, eager {eager:.0f} µs")
        print(f"{name}, {place}, times eager: {ours / eager:.2f}")
        if name in LIGER:
            liger = times[place, name, "liger"]
            print(f"{name}, {place}, times liger: {ours / liger:.2f}")
