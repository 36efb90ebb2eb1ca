"""What the examples beside this file time on, and how they time what a GPU does."""

import torch
from triton.testing import do_bench


def leaf(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)


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
    """GB/s forward and backward, counting each tensor of the size of dy once."""
    forward = seconds(lambda: op(*inputs))
    both = seconds(lambda: torch.autograd.grad(op(*inputs), inputs, dy))
    return 2 * dy.nbytes / forward / 1e9, 3 * dy.nbytes / (both - forward) / 1e9
