"""Tolerances hold for honest rounding and for nothing much worse."""

import pytest
import torch

from gradproof.tolerance import allowed, compare


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rounding_passes_and_a_hundred_roundings_do_not(dtype):
    truth = torch.randn(1000, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    expected = allowed(truth, dtype, length=1, scale=1.0, loss=0.0, half_loss=0.0)
    assert compare(truth.to(dtype), expected) is None
    worse = truth.clone()
    worse[7] += 100 * torch.finfo(dtype).eps * truth.abs().max()
    mismatch = compare(worse, expected)
    assert mismatch.places == 1
    assert mismatch.where == (7,)


def test_a_long_sum_may_lose_more_than_a_short_one():
    truth = torch.ones(1, dtype=torch.float64)
    short, long = (allowed(truth, torch.float32, n, 1.0, 0.0, 0.0) for n in (1, 10_000))
    assert long.tolerance > 10 * short.tolerance


def test_torchs_own_loss_in_half_is_capped():
    truth = torch.ones(4, dtype=torch.float64)
    expected = allowed(truth, torch.bfloat16, 1, 1.0, loss=0.0, half_loss=100.0)
    assert float(expected.tolerance.max()) < 1


def test_nan_is_wrong_where_a_number_is_expected_and_nowhere_else():
    truth = torch.tensor([1.0, torch.inf], dtype=torch.float64)
    expected = allowed(truth, torch.float32, 1, 1.0, 0.0, 0.0)
    mismatch = compare(torch.tensor([torch.nan, torch.nan]), expected)
    assert str(mismatch) == "not finite at 1 of 1 places, first at [0] (got nan, expected 1)"


def test_what_differs_is_printed_differently():
    truth = torch.full((2,), -2.1301, dtype=torch.float64)
    expected = allowed(truth, torch.float32, 1, 1.0, 0.0, 0.0)
    mismatch = compare(torch.tensor([-2.1317, -2.1301]), expected)
    assert str(mismatch).endswith("at [0] (got -2.132, expected -2.13)")
