import pytest
import torch
import torch.nn.functional as F

from gradkernels import _wide_norm
from gradkernels.layer_norm import layer_norm


def reference(x, w, b):
    return F.layer_norm(x, w.shape, w, b)


def bounds(x, w, b, dy):
    # With k = log₂ n + 8 roundings for a sum along a row: the mean is off by k of mean|x|, which
    # shifts x̂ by that times rstd; the variance, a sum of squares, is good to k. Hence
    # x̂'s size for rounding is X = |x̂| + rstd mean|x|. dx has three terms, dw and db sum rows.
    k = 8 + w.numel().bit_length()
    mean = x.mean(-1, keepdim=True)
    rstd = torch.rsqrt((x - mean).square().mean(-1, keepdim=True) + 1e-5)
    size = ((x - mean) * rstd).abs() + rstd * x.abs().mean(-1, keepdim=True)
    h = (w * dy).abs()
    y = w.abs() * size + b.abs()
    dx = rstd * (h + h.mean(-1, keepdim=True) + size * (h * size).mean(-1, keepdim=True))
    dw = (dy.abs() * size).reshape(-1, w.numel()).sum(0).view(w.shape)
    db = dy.abs().reshape(-1, w.numel()).sum(0).view(w.shape)
    rows = k + max(1, x.numel() // max(1, w.numel())).bit_length() + 4
    return [(y, k * y), (dx, k * dx), (dw, rows * dw), (db, rows * db)]


def arguments(shape, dtype, device):
    x, w, b = torch.randn(shape), torch.randn(shape[-1]), torch.randn(shape[-1])
    return [t.to(device, dtype) for t in (x, w, b)]


def test_agrees_with_fp64(device, agree, arrange, dtype, shape, layout, dy_layout):
    x, w, b = arguments(shape, dtype, device)
    dy = arrange(torch.randn(shape).to(device, dtype), dy_layout)
    agree(layer_norm, reference, [arrange(x, layout), w, b], dy, bounds, "layer_norm")


WIDTHS = {13: "short", 45: "odd parts", 70: "parts", 104: "of two", 176: "by columns", 333: "odd"}


@pytest.mark.parametrize("wide_dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("n", WIDTHS, ids=WIDTHS.values())
def test_rows_wider_than_a_block(device, agree, narrow, n, wide_dtype):
    x, w, b = arguments((20, n), wide_dtype, device)
    agree(layer_norm, reference, [x, w, b], torch.randn_like(x), bounds, "layer_norm/wide")


def test_columns_of_a_wide_row_by_several_groups(device, agree, narrow, monkeypatch):
    monkeypatch.setattr(_wide_norm, "multiprocessors", lambda x: 64)
    x, w, b = arguments((20, 176), torch.float32, device)
    agree(layer_norm, reference, [x, w, b], torch.randn_like(x), bounds, "layer_norm/groups")


@pytest.mark.gpu
def test_a_row_of_more_than_a_million(device, agree):
    x, w, b = arguments((3, 2**20 + 1), torch.float32, device)
    agree(layer_norm, reference, [x, w, b], torch.randn_like(x), bounds, "layer_norm/million")


def test_a_mean_large_beside_the_spread(device, agree):
    """mean(x²) − mean² would leave no digit here, and torch on the CPU in bf16 leaves few."""
    x, w, b = arguments((5, 256), torch.float32, device)
    agree(
        layer_norm, reference, [x + 1000, w, b], torch.randn_like(x), bounds, "layer_norm/shifted"
    )


@pytest.mark.parametrize("asked", ["x", "weight", "bias"])
@pytest.mark.parametrize("n", [9, 176])
def test_computes_only_the_gradient_asked_for(device, narrow, asked, n):
    names = ("x", "weight", "bias")
    given = dict(zip(names, arguments((5, n), torch.float32, device), strict=True))
    all_of_them = {name: t.clone().requires_grad_() for name, t in given.items()}
    given[asked].requires_grad_()
    layer_norm(**given).square().sum().backward()
    layer_norm(**all_of_them).square().sum().backward()
    assert torch.equal(given[asked].grad, all_of_them[asked].grad)


def test_the_bias_may_be_left_out(device):
    x, w, _ = (t.requires_grad_() for t in arguments((5, 9), torch.float32, device))
    y = layer_norm(x, w)
    assert torch.allclose(y, F.layer_norm(x, w.shape, w), atol=1e-5)
    y.square().sum().backward()
    assert w.grad.shape == w.shape


def test_says_which_argument_is_wrong(device):
    x, w, b = arguments((4, 8), torch.float32, device)
    with pytest.raises(ValueError, match=r"bias has shape \(7,\); expected weight's, \(8,\)"):
        layer_norm(x, w, b[:7])
    with pytest.raises(TypeError, match=r"bias has dtype torch\.float16"):
        layer_norm(x, w, b.half())
    with pytest.raises(ValueError, match=r"weight has shape \(7,\) and x \(4, 8\)"):
        layer_norm(x, w[:7])
