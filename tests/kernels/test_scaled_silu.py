import pytest
import torch
import torch.nn.functional as F

from gradkernels.scaled_silu import scaled_silu


def reference(x, w):
    return w * F.silu(x)


def bounds(x, w, dy):
    # y and dx: σ is good to 4 roundings and, where it is small, to |x| more, which the exponential
    # makes of the rounding of its argument; then at most 4 products and sums of like size. dw: so
    # is each term, and a tree of n terms adds log₂ n roundings of at most the sum of their sizes.
    k = 8 + x.abs()
    y, slope = reference(x, w).abs(), 1 + x.abs() * torch.sigmoid(x) * torch.sigmoid(-x)
    dx = (dy * w).abs() * slope
    terms = (dy * F.silu(x)).abs()
    dw = (dy * F.silu(x)).sum().abs()
    depth = max(1, x.numel()).bit_length()
    return [(y, k * y), (dx, k * dx), (dw, ((k + depth) * terms).sum())]


def test_agrees_with_fp64(device, agree, arrange, dtype, shape, layout, dy_layout):
    x = arrange(3 * torch.randn(shape, device=device, dtype=torch.float64).to(dtype), layout)
    w = torch.randn(shape[:1] if shape[0] == 1 else (), device=device).to(dtype)
    dy = arrange(torch.randn(shape, device=device, dtype=torch.float64).to(dtype), dy_layout)
    agree(scaled_silu, reference, [x, w], dy, bounds, "scaled_silu")


@pytest.mark.parametrize("dw", ["partials", "atomic"])
def test_many_blocks(device, agree, dw):
    x = torch.randn(70_001 if device == "cpu" else 2**25 + 1, device=device)
    w = torch.randn(1, device=device)
    op = lambda x, w: scaled_silu(x, w, dw)  # noqa: E731
    agree(op, reference, [x, w], torch.randn_like(x), bounds, f"scaled_silu/{dw}")


def test_the_scale_may_have_another_dtype(device):
    x = torch.randn(50, device=device, dtype=torch.bfloat16, requires_grad=True)
    w = torch.randn((), device=device, requires_grad=True)
    y = scaled_silu(x, w)
    y.float().sum().backward()
    assert y.dtype == torch.bfloat16 and w.grad.dtype == torch.float32


@pytest.mark.parametrize("asked", ["x", "w"])
def test_computes_only_the_gradient_asked_for(device, asked):
    given = {"x": torch.randn(9, device=device), "w": torch.randn(1, device=device)}
    both = [t.clone().requires_grad_() for t in given.values()]
    given[asked].requires_grad_()
    scaled_silu(**given).sum().backward()
    scaled_silu(*both).sum().backward()
    assert torch.equal(given[asked].grad, both["xw".index(asked)].grad)


def test_says_which_argument_is_wrong(device):
    x, w = torch.randn(4, device=device), torch.ones(2, device=device)
    with pytest.raises(
        ValueError, match=r"scaled_silu: w has shape \(2,\); expected \(\) or \(1,\)"
    ):
        scaled_silu(x, w)
    with pytest.raises(ValueError, match=r'dw is "?\'?sum\'?"?; expected "partials" or "atomic"'):
        scaled_silu(x, w[:1], "sum")
