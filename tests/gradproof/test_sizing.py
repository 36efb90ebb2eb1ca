"""Which dimensions belong together is found by asking the reference."""

import torch
import torch.nn.functional as F

from gradproof import Case
from gradproof.sizing import accepts, axes, resized
from gradproof.subject import Subject


def places(op, *inputs):
    return [axis.places for axis in axes(Subject.of(Case(op, inputs, op)))]


def test_tied_dimensions_are_tied():
    layer_norm = lambda x, w: F.layer_norm(x, x.shape[-1:], w)  # noqa: E731
    assert places(layer_norm, torch.randn(4, 6), torch.randn(6)) == [((0, 0),), ((0, 1), (1, 0))]


def test_equal_sizes_that_are_not_tied_are_told_apart():
    square = places(torch.matmul, torch.randn(4, 4), torch.randn(4, 4))
    assert square == [((0, 0),), ((0, 1), (1, 0)), ((1, 1),)]


def test_keys_and_values_change_together_and_queries_alone():
    q = torch.randn(2, 3, 5, 8)
    found = places(F.scaled_dot_product_attention, q, q, q)
    assert ((0, 2),) in found
    assert ((1, 2), (2, 2)) in found


def test_indices_stay_within_a_resized_dimension():
    target = torch.tensor([0, 5, 3])
    subject = Subject.of(Case(F.cross_entropy, (torch.randn(3, 6), target), F.cross_entropy))
    classes = axes(subject)[1]
    smaller = resized(subject, {classes: 2})
    assert smaller.inputs[0].shape == (3, 2)
    assert int(smaller.inputs[1].max()) < 2
    assert accepts(subject, {classes: 2})
    assert not accepts(subject, {classes: 0})
