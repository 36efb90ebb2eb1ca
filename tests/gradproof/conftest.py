"""On a machine without a GPU the gallery's kernels run in Triton's interpreter."""

import os
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

ROOT = Path(__file__).parents[2]


@pytest.fixture
def root():
    return ROOT


@pytest.fixture
def child_environment():
    """For processes of their own: this checkout's gradproof, whatever is installed."""
    return {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}


class Square(torch.autograd.Function):
    """y = x², and right in every respect that the probes ask about."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy


@pytest.fixture
def square():
    return Square.apply


@pytest.fixture
def scaling():
    """w·x for a scalar w, whose dw is what `dw(x, dy)` makes of it."""

    def operation(dw):
        class Scale(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x, w):
                ctx.save_for_backward(x, w)
                return w * x

            @staticmethod
            def backward(ctx, dy):
                if torch.is_grad_enabled():
                    raise RuntimeError("first derivatives only")
                x, w = ctx.saved_tensors
                return w * dy, dw(x, dy).to(w.dtype)

        return Scale.apply

    return operation
