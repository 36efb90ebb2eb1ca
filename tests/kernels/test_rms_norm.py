import pytest
import torch
import torch.nn.functional as F

from gradkernels import _wide_norm
from gradkernels.rms_norm import rms_norm


def reference(x, w):
    return F.rms_norm(x, w.shape, w, 1e-6)


def bounds(x, w, dy):
    # A sum of n squares, all positive, is good to log₂ n roundings in a tree, so rstd and x̂ are
    # to k = log₂ n + 8. dx has two terms, w dy and x̂ mean(w dy x̂); the mean is off by k roundings
    # of the mean of sizes. dw sums over rows, in log₂ rows + (blocks a program) more roundings.
    k = 8 + w.numel().bit_length()
    x_hat = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    rstd = torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
    y, h = (w * x_hat).abs(), (w * dy).abs()
    terms = rstd * (h + x_hat.abs() * (h * x_hat.abs()).mean(-1, keepdim=True))
    columns = (dy * x_hat).abs().reshape(-1, w.numel()).sum(0).view(w.shape)
    rows = max(1, x.numel() // max(1, w.numel()))
    return [(y, k * y), (terms, k * terms), (columns, (k + rows.bit_length() + 4) * columns)]


def op(x, w):
    return rms_norm(x, w, 1e-6)


def test_agrees_with_fp64(device, agree, arrange, dtype, shape, layout, dy_layout):
    x = arrange(torch.randn(shape, device=device, dtype=torch.float64).to(dtype), layout)
    w = torch.randn(2 * shape[-1], device=device, dtype=torch.float64).to(dtype)[::2]
    dy = arrange(torch.randn(shape, device=device, dtype=torch.float64).to(dtype), dy_layout)
    agree(op, reference, [x, w], dy, bounds, "rms_norm")


WIDTHS = {13: "short", 45: "odd parts", 70: "parts", 200: "again", 400: "by columns", 333: "odd"}


@pytest.mark.parametrize("dw", ["partials", "atomic"])
@pytest.mark.parametrize("wide_dtype", [torch.float32, torch.bfloat16], ids=["fp32", "bf16"])
@pytest.mark.parametrize("n", WIDTHS, ids=WIDTHS.values())
def test_rows_wider_than_a_block(device, agree, narrow, n, wide_dtype, dw):
    x, w = (torch.randn(shape, device=device).to(wide_dtype) for shape in [(20, n), (n,)])
    wide = lambda x, w: rms_norm(x, w, 1e-6, dw)  # noqa: E731
    agree(wide, reference, [x, w], torch.randn_like(x), bounds, f"rms_norm/wide-{dw}")


@pytest.mark.parametrize("dw", ["partials", "atomic"])
def test_columns_of_a_wide_row_by_several_groups(device, agree, narrow, monkeypatch, dw):
    monkeypatch.setattr(_wide_norm, "multiprocessors", lambda x: 64)
    x, w = torch.randn(20, 400, device=device), torch.randn(400, device=device)
    wide = lambda x, w: rms_norm(x, w, 1e-6, dw)  # noqa: E731
    agree(wide, reference, [x, w], torch.randn_like(x), bounds, f"rms_norm/groups-{dw}")


@pytest.mark.gpu
def test_a_row_of_more_than_a_million(device, agree):
    x, w = torch.randn(3, 2**20 + 1, device=device), torch.randn(2**20 + 1, device=device)
    agree(op, reference, [x, w], torch.randn_like(x), bounds, "rms_norm/million")


@pytest.mark.parametrize("n", [3, 40, 1025])
def test_atomic_sums_agree_with_fp64(device, agree, n):
    x, w = torch.randn(70, n, device=device), torch.randn(n, device=device)
    atomic = lambda x, w: rms_norm(x, w, 1e-6, dw="atomic")  # noqa: E731
    agree(atomic, reference, [x, w], torch.randn_like(x), bounds, "rms_norm/atomic")


def test_a_weight_of_two_dimensions_makes_rows_of_both(device):
    x = torch.randn(4, 3, 5, device=device, requires_grad=True)
    w = torch.randn(3, 5, device=device, requires_grad=True)
    dy = torch.randn_like(x)
    for got, want in zip(
        torch.autograd.grad(op(x, w), [x, w], dy),
        torch.autograd.grad(reference(x, w), [x, w], dy),
        strict=True,
    ):
        assert torch.allclose(got, want, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_eps_left_out_is_torchs(device, dtype):
    x = torch.full((2, 8), 1e-3, device=device, dtype=dtype)
    w = torch.ones(8, device=device, dtype=dtype)
    want = x.double() / (x.double() ** 2 + torch.finfo(dtype).eps).sqrt()
    assert torch.allclose(rms_norm(x, w).double(), want, rtol=4 * torch.finfo(dtype).eps)


@pytest.mark.parametrize("asked", ["x", "weight"])
def test_computes_only_the_gradient_asked_for(device, asked):
    given = {"x": torch.randn(5, 9, device=device), "weight": torch.randn(9, device=device)}
    both = {name: t.clone().requires_grad_() for name, t in given.items()}
    given[asked].requires_grad_()
    rms_norm(**given).square().sum().backward()
    rms_norm(**both).square().sum().backward()
    assert torch.equal(given[asked].grad, both[asked].grad)


def test_says_which_argument_is_wrong(device):
    x, w = torch.randn(4, 8, device=device), torch.ones(7, device=device)
    with pytest.raises(ValueError, match=r"weight has shape \(7,\) and x \(4, 8\)"):
        rms_norm(x, w)
    with pytest.raises(ValueError, match="dw is 'sum'"):
        rms_norm(x, torch.ones(8, device=device), dw="sum")
