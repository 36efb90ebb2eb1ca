"""An explanation by block sizes has to hold beside the sizes that are wrong."""

import numpy as np
import pytest
import torch

from gradproof import prove


def scale(x, w):
    return w * x


@pytest.fixture
def scaled(scaling):
    """w·x, where `total` sums the terms of dw."""
    return lambda total: scaling(lambda x, dy: total(x.double() * dy.double()))


def given(dtype):
    x = torch.linspace(-2, 2, 96).to(dtype)
    return x, torch.tensor(1.5, dtype=dtype)


@pytest.mark.parametrize("block", [8, 16, 32, 128])
def test_a_narrow_accumulator_has_no_ragged_edge(scaled, block):
    def total(terms):
        padded = torch.nn.functional.pad(terms.flatten(), (0, -terms.numel() % block))
        partials = padded.view(-1, block).sum(1).half().numpy()
        return torch.tensor(np.cumsum(partials, dtype=np.float16)[-1:].sum())

    report = prove(scaled(total), given(torch.float16), scale)
    assert report.traps == ("half-precision-accumulator",), str(report)


@pytest.mark.parametrize("block", [4, 16, 64, 128, 256])
def test_a_lost_tail_is_a_ragged_edge(scaled, block):
    def total(terms):
        whole = terms.numel() // block * block
        return terms.flatten()[:whole].sum()

    report = prove(scaled(total), given(torch.float32), scale, probes=["sizes"])
    assert report.traps == ("ragged-edge",), str(report)
    assert f"multiples of {block} are right" in report.findings[0].beside


def test_an_error_at_two_large_sizes_is_no_ragged_edge(scaled):
    def total(terms):
        return terms.sum() * (1.01 if terms.numel() in (256, 257, 2**20, 2**20 + 1) else 1)

    report = prove(scaled(total), given(torch.float32), scale, probes=["sizes"])
    assert report.traps == ("wrong-at-some-sizes",), str(report)


def test_an_op_may_return_nothing_of_nothing():
    def op(x):
        return x * x if x.numel() else None

    report = prove(op, (torch.randn(3, 4),), torch.square)
    assert report.traps == ("empty-input",), str(report)
    assert "expected a floating tensor or a tuple of them back, got NoneType" in str(report)


def test_a_reference_that_dies_of_nothing_is_not_run_on_it():
    """`scaled_dot_product_attention` without heads ends the process, on the CPU of torch 2.11."""
    ran = []

    def reference(x):
        ran.append((x.device.type, x.numel()))
        return torch.nn.functional.silu(x)

    report = prove(torch.nn.functional.silu, (torch.randn(4, 6),), reference, probes=["sizes"])
    assert report.traps == (), str(report)
    assert {device for device, numel in ran if not numel} == {"meta"}
