"""After a memory fault every call fails: no probe takes that for a refusal and goes on."""

import pytest
import torch

from gradproof import prove
from gradproof.probes import PROBES


@pytest.fixture
def square():
    """x², whose first run is well and whose second takes the CUDA context with it."""
    runs = []

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(x):
            runs.append(x)
            if len(runs) > 1:
                raise RuntimeError("CUDA error: an illegal memory access was encountered")
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            return 2 * x * dy

    return Square.apply


@pytest.mark.parametrize("probe", [name for name in PROBES if name != "compile"])
def test_the_probe_that_meets_it_says_so_and_nothing_else(square, probe):
    report = prove(square, (torch.linspace(-1, 1, 6),), reference=torch.square, probes=[probe])
    assert report.traps == ("illegal-address",), str(report)
