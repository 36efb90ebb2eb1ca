import pytest
import torch
import torch.nn.functional as F

from gradkernels.gelu import gelu


def bounds(x, dy):
    # Φ is made of a formula that is off by 1.25 roundings at 1, and of instructions that are off by
    # 2 to 4 roundings of a tail of at most ½ (two reciprocal roots, an exponential, six sums);
    # together 10 at most. φ is good to 4 in its exponent x²/2. Then two products and the result.
    y = F.gelu(x)
    density = (-0.5 * x * x).exp() * 0.4
    slope = 1 + x.abs() * density * (1 + x * x)
    return [(y.abs(), 10 * x.abs()), (dy.abs() * slope, 10 * dy.abs() * slope)]


def test_agrees_with_fp64(device, agree, arrange, dtype, shape, layout, dy_layout):
    x = arrange(3 * torch.randn(shape, device=device, dtype=torch.float64).to(dtype), layout)
    dy = arrange(torch.randn(shape, device=device, dtype=torch.float64).to(dtype), dy_layout)
    agree(gelu, F.gelu, [x], dy, bounds, "gelu")


@pytest.mark.gpu
def test_many_elements(device, agree):
    x = 3 * torch.randn(2**20 + 1, device=device, dtype=torch.bfloat16)
    agree(gelu, F.gelu, [x], torch.randn_like(x), bounds, "gelu")


@pytest.mark.gpu
def test_more_elements_than_int32_counts(device):
    n = 2**31 + 3
    x = torch.full((n,), -1.0, device=device, dtype=torch.bfloat16)
    x[-2:] = 2.0
    x.requires_grad_()
    y = gelu(x)
    (dx,) = torch.autograd.grad(y, x, torch.ones_like(y))
    for got, f in ((y, F.gelu), (dx, lambda t: torch.autograd.grad(F.gelu(t).sum(), t)[0])):
        want = f(torch.tensor([-1.0, 2.0, 2.0], device=device, requires_grad=True))
        assert torch.allclose(got[-3:].float(), want, rtol=2**-7)


def test_keeps_the_strides_of_a_dense_argument(device):
    x = torch.randn(4, 6, device=device).t()
    assert gelu(x).stride() == x.stride()


def test_far_from_zero_it_is_the_identity_or_nothing(device):
    x = torch.tensor([-1e30, -100.0, 100.0, 1e30], device=device, requires_grad=True)
    y = gelu(x)
    (dx,) = torch.autograd.grad(y.sum(), x)
    assert y.tolist() == [0, 0, 100, x[3].item()] and dx.tolist() == [0, 0, 1, 1]
