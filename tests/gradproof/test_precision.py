"""A sum is judged by its longest form, and by shorter ones where that is off."""

import numpy as np
import pytest
import torch

from gradproof import prove


@pytest.fixture
def lengths(scaling):
    """Of the sums that the probe `precision` lets an op make that keeps them in `dtype`."""

    def of(dtype):
        def total(x, dy):
            made.append(x.numel())
            return torch.tensor(np.cumsum((x * dy).numpy(), dtype=dtype)[-1])

        made = []
        inputs = torch.linspace(-2, 2, 96).half(), torch.tensor(1.5).half()
        report = prove(scaling(total), inputs, lambda x, w: w * x, probes=["precision"])
        return report.traps, sorted({*made} & {16, 4096, 32768})

    return of


def test_where_the_longest_sum_is_right_no_other_is_run(lengths):
    assert lengths(np.float32) == ((), [32768])


def test_where_it_is_not_shorter_ones_show_how_the_error_grows(lengths):
    assert lengths(np.float16) == (("half-precision-accumulator",), [16, 4096, 32768])


def nothing():
    pass


@pytest.mark.parametrize("calls", [lambda n: 5000, lambda n: 20 * n, lambda n: n * n // 100])
def test_lengths_are_the_same_with_sizes_and_without(calls):
    def op(x):
        for _ in range(calls(x.numel())):
            nothing()
        return x * x

    def tried(*probes):
        return prove(op, (torch.linspace(-2, 2, 96),), torch.square, probes).results[-1].tried

    assert tried("precision") == tried("sizes", "precision")
