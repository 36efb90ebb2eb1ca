"""Shapes and strides nobody thought of."""

import hypothesis.strategies as st
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings

from gradkernels.gelu import gelu
from gradkernels.layer_norm import layer_norm
from gradkernels.softmax import softmax


@st.composite
def views(draw):
    """A recipe for a view of a buffer: sizes, and for each dimension a step, or 0 to expand it."""
    sizes = draw(st.lists(st.integers(1, 5), min_size=1, max_size=4))
    order = draw(st.permutations(range(len(sizes))))
    steps = draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
    return sizes, order, steps, draw(st.integers(0, 3))


def view(recipe, device, dtype):
    """The dimensions lie in memory in the order given, with gaps of `step`, from an offset."""
    sizes, order, steps, offset = recipe
    strides, span = [0] * len(sizes), 1
    for d in order:
        strides[d] = span * steps[d]
        span *= max(1, sizes[d] * steps[d])
    buffer = torch.randn(span + offset, device=device, dtype=dtype)
    return buffer.as_strided(sizes, strides, offset)


def layer_norm_of_last(x):
    return layer_norm(x, x.new_full((x.shape[-1],), 2.0))


def torch_layer_norm_of_last(x):
    return F.layer_norm(x, x.shape[-1:], x.new_full((x.shape[-1],), 2.0))


@pytest.mark.parametrize(
    ("op", "counterpart"),
    [
        (gelu, F.gelu),
        (softmax, lambda x: F.softmax(x, -1)),
        (layer_norm_of_last, torch_layer_norm_of_last),
    ],
    ids=["gelu", "softmax", "layer_norm"],
)
def test_any_view_gives_what_torch_gives(device, op, counterpart):
    @settings(max_examples=25 if device == "cpu" else 200, deadline=None, derandomize=True)
    @given(views(), st.data())
    def check(recipe, data):
        x = view(recipe, device, torch.float64).detach().requires_grad_()
        sizes = recipe[0]
        order = data.draw(st.permutations(range(len(sizes))))
        steps = data.draw(st.lists(st.integers(0, 3), min_size=len(sizes), max_size=len(sizes)))
        dy = view((sizes, order, steps, data.draw(st.integers(0, 3))), device, torch.float64)
        results = []
        for f in (op, counterpart):
            y = f(x)
            results.append((y, *torch.autograd.grad(y, x, dy)))
        for got, want in zip(*results, strict=True):
            assert got.shape == want.shape and torch.allclose(got, want, rtol=1e-6, atol=1e-7)

    check()
