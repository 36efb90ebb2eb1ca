"""The layouts tried are those that autograd hands over, and they keep the values."""

import pytest
import torch

from gradproof.layout import expanded, rearranged


@pytest.mark.parametrize("shape", [(), (4,), (3, 4), (2, 3, 4), (2, 3, 4, 5)])
def test_values_are_kept_and_strides_are_not(shape):
    x = torch.randn(shape)
    strides = set()
    for label, laid in rearranged(x):
        assert torch.equal(laid, x), label
        strides.add((laid.stride(), laid.storage_offset()))
    assert (x.stride(), 0) not in strides
    assert len(strides) == len(list(rearranged(x)))


def dy_of(consume):
    """The dy that a consumer of y hands to the node that made y."""
    seen = []
    y = torch.randn(3, 4, requires_grad=True) * 1
    y.register_hook(lambda dy: seen.append(dy))
    consume(y)
    return seen[0]


def test_autograd_really_hands_these_over():
    handed = {
        dy_of(lambda y: y.sum().backward()).stride(),
        dy_of(lambda y: y.sum(0).backward(torch.randn(4))).stride(),
        dy_of(lambda y: y.sum(1).backward(torch.randn(3))).stride(),
        dy_of(lambda y: y.t().backward(torch.randn(4, 3))).stride(),
    }
    assert handed == {(0, 0), (0, 1), (1, 0), (1, 3)}
    plain = torch.randn(3, 4)
    tried = {laid.stride() for _, laid in (*rearranged(plain), *expanded(plain))}
    assert handed <= tried


def test_cat_hands_over_a_piece_of_longer_rows():
    joined = dy_of(lambda y: torch.cat([y, y.detach()], 1).backward(torch.randn(3, 8)))
    assert joined.stride() == (8, 1)
    longer = [laid.stride() for label, laid in rearranged(joined.contiguous()) if "cat" in label]
    assert [(rows > 4, columns) for rows, columns in longer] == [(True, 1)]
