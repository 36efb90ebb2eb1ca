import math

import pytest
import torch

from gradkernels.softmax import softmax


def reference(x):
    return torch.softmax(x, dim=-1)


def bounds(x, dy):
    # x − m is exact to one rounding of its size, which the exponential makes relative; the sum of
    # n positive terms is good to log₂ n roundings. dx is made of y as stored, rounded once, hence
    # a twice: for y inside, and for the result.
    y = reference(x)
    k = 8 + (x - x.amax(-1, keepdim=True)).abs() + x.shape[-1].bit_length()
    dx = y * (dy.abs() + (y * dy.abs()).sum(-1, keepdim=True))
    return [(y, k * y), (3 * dx, 2 * k.amax(-1, keepdim=True) * dx)]


def test_agrees_with_fp64(device, agree, arrange, dtype, shape, layout, dy_layout):
    x = arrange(3 * torch.randn(shape, device=device, dtype=torch.float64).to(dtype), layout)
    dy = arrange(torch.randn(shape, device=device, dtype=torch.float64).to(dtype), dy_layout)
    agree(softmax, reference, [x], dy, bounds, "softmax")


@pytest.mark.parametrize("n", [56, 200, 333], ids=["again", "in blocks", "odd"])
def test_rows_wider_than_a_block(device, agree, narrow, n):
    x = 3 * torch.randn(70, n, device=device)
    agree(softmax, reference, [x], torch.randn_like(x), bounds, "softmax/wide")


@pytest.mark.gpu
def test_a_row_of_more_than_a_million(device, agree):
    x = 3 * torch.randn(3, 2**20 + 1, device=device)
    agree(softmax, reference, [x], torch.randn_like(x), bounds, "softmax/million")


def test_large_values_do_not_overflow_and_masked_ones_get_nothing(device):
    x = torch.tensor([[1e30, 1e30, -math.inf], [-1e30, 0.0, -math.inf]], device=device)
    assert softmax(x).tolist() == [[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]


def test_a_row_of_minus_infinity_or_nan_is_nan_as_in_torch(device):
    x = torch.tensor([[-math.inf, -math.inf], [math.nan, 0.0], [0.0, 0.0]], device=device)
    assert softmax(x).isnan().tolist() == reference(x).isnan().tolist()


def test_a_scalar_is_one_row_of_one(device):
    assert softmax(torch.tensor(3.0, device=device)).item() == 1.0
