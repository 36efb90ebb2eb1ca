# needs: gpu 80GB
# time limit: 300 s
"""GELU and scaled SiLU beside their peers, and beside the least that the memory can do."""

# %% setup
import torch
import torch.nn.functional as F
from triton.testing import do_bench

from gradkernels.gelu import gelu
from gradkernels.scaled_silu import scaled_silu

torch.manual_seed(0)
N = 2**27


def seconds(f):
    """The median time on the GPU alone: a replayed graph never waits for the host."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            f()
    stream.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        f()
    return do_bench(graph.replay, warmup=10, rep=50, return_mode="median") / 1e3


def rates(op, inputs, dy):
    """GB/s forward and backward, counting each tensor of N elements once."""
    forward = seconds(lambda: op(*inputs))
    both = seconds(lambda: torch.autograd.grad(op(*inputs), inputs, dy))
    return 2 * dy.nbytes / forward / 1e9, 3 * dy.nbytes / (both - forward) / 1e9


def leaf(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)


# %% table tags=["measured"]
OPERATIONS = {
    "gelu": (gelu, F.gelu, [leaf(N)]),
    "scaled_silu": (scaled_silu, lambda x, w: w * F.silu(x), [leaf(N), leaf()]),
}
dy, out = torch.randn(2, N, device="cuda", dtype=torch.bfloat16)
for name, (op, counterpart, inputs) in OPERATIONS.items():
    x = inputs[0].detach()
    add = 3 * x.nbytes / seconds(lambda x=x: torch.add(x, dy, out=out)) / 1e9
    forward, backward = rates(op, inputs, dy)
    print(f"{name} add: {add:.0f} GB/s")
    print(f"{name} forward: {forward:.0f} GB/s")
    print(f"{name} backward: {backward:.0f} GB/s")
    print(f"{name} share of add: {backward / add:.2f}")
    for peer, f in (("eager", counterpart), ("compile", torch.compile(counterpart))):
        peer_forward, peer_backward = rates(f, inputs, dy)
        print(f"{name} forward, times {peer}: {forward / peer_forward:.2f}")
        print(f"{name} backward, times {peer}: {backward / peer_backward:.2f}")
