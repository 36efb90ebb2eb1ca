import math

import pytest
import torch
import torch.nn.functional as F

from gradkernels import cross_entropy as module
from gradkernels.cross_entropy import cross_entropy

REDUCTIONS = ["mean", "sum", "none"]


def checks(target, reduction):
    def reference(x):
        return F.cross_entropy(x, target, reduction=reduction)

    def bounds(x, dy):
        # lse = m + log Σ: the sum of n positive terms is good to log₂ n roundings plus the size of
        # x − m for the exponential, as is p. A reduction adds log₂ rows more. A row's loss is no
        # larger than 2 max|x| + log n.
        spread = (x - x.amax(1, keepdim=True)).abs().amax() if x.numel() else 0
        k = 8 + spread + x.shape[1].bit_length() + target.numel().bit_length()
        rows = 2 * x.abs().amax(1) + x.shape[1].bit_length() if x.numel() else x.sum(1)
        live = (target != -100).double()
        count = live.sum() if reduction == "mean" else 1
        size = rows * live if reduction == "none" else (rows * live).sum() / count
        p = torch.softmax(x, 1) + F.one_hot(target.clamp(min=0).long(), x.shape[1])
        scale = (dy.abs() if reduction == "none" else dy.abs().expand(len(x))) * live / count
        dx = p * scale[:, None]
        return [(size, k * size), (dx, k * dx)]

    return (lambda x: cross_entropy(x, target, reduction=reduction)), reference, bounds


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize(
    ("shape", "layout"),
    [((5, 33), layout) for layout in ("transposed", "sliced", "padded", "expanded")]
    + [(shape, "contiguous") for shape in ((1, 1), (5, 33), (3, 1025), (20, 3))],
    ids=str,
)
@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_agrees_with_fp64(device, agree, arrange, dtype, layout, shape, reduction):
    x = arrange(3 * torch.randn(shape).to(device, dtype), layout)
    target = torch.randint(shape[1], shape[:1], device=device)
    target[1::3] = -100
    op, reference, bounds = checks(target, reduction)
    dy = torch.randn(shape[:1] if reduction == "none" else (), dtype=x.dtype).to(device)
    agree(op, reference, [x], dy, bounds, f"cross_entropy/{reduction}")


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_rows_wider_than_a_block(device, agree, monkeypatch, reduction):
    monkeypatch.setattr(module, "BLOCK", 64)
    monkeypatch.setattr(module, "BACKWARD_BLOCK", 32)
    x, target = 3 * torch.randn(9, 333, device=device), torch.randint(333, (9,), device=device)
    op, reference, bounds = checks(target, reduction)
    dy = torch.randn((9,) if reduction == "none" else (), device=device)
    agree(op, reference, [x], dy, bounds, "cross_entropy/wide")


@pytest.mark.gpu
def test_more_logits_than_int32_counts(device):
    rows, n = 2**14 + 1, 2**17
    x = torch.zeros(rows, n, device=device, dtype=torch.bfloat16)
    x[-1, -1] = 5.0
    x.requires_grad_()
    target = torch.full((rows,), n - 1, device=device)
    loss = cross_entropy(x, target, reduction="none")
    (dx,) = torch.autograd.grad(loss, x, torch.ones_like(loss))
    want = math.log(n - 1 + math.exp(5)) - 5
    assert abs(loss[-1].item() - want) < 2**-7 * want
    assert abs(dx[-1, -1].item() - (math.exp(5) / (n - 1 + math.exp(5)) - 1)) < 2**-7


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_classes_come_second_as_in_torch(device, reduction):
    x = torch.randn(2, 7, 3, 4, device=device, requires_grad=True)
    target = torch.randint(7, (2, 3, 4), device=device)
    got = cross_entropy(x, target, reduction=reduction)
    want = F.cross_entropy(x, target, reduction=reduction)
    dy = torch.randn_like(want)
    assert got.shape == want.shape and torch.allclose(got, want, atol=1e-5)
    dx = [torch.autograd.grad(loss, x, dy)[0] for loss in (got, want)]
    assert torch.allclose(*dx, atol=1e-6)
    one = cross_entropy(x[0, :, 0, 0], target[0, 0, 0], reduction=reduction)
    assert torch.allclose(one, F.cross_entropy(x[0, :, 0, 0], target[0, 0, 0], reduction=reduction))


def test_all_rows_ignored_is_nan_for_the_mean_and_nothing_else(device):
    x = torch.randn(3, 5, device=device, requires_grad=True)
    target = torch.full((3,), 2, device=device)
    assert cross_entropy(x, target, ignore_index=2).isnan()
    loss = cross_entropy(x, target, ignore_index=2, reduction="sum")
    (dx,) = torch.autograd.grad(loss, x)
    assert loss == 0 and (dx == 0).all()


def test_minus_infinity_is_a_class_that_cannot_be(device):
    x = torch.tensor([[0.0, -math.inf, 0.0]], device=device, requires_grad=True)
    target = torch.tensor([0], device=device)
    loss = cross_entropy(x, target)
    (dx,) = torch.autograd.grad(loss, x)
    assert math.isclose(loss.item(), math.log(2), rel_tol=1e-6)
    assert torch.allclose(dx, torch.tensor([[-0.5, 0.0, 0.5]], device=device))


def test_a_class_outside_is_named_on_the_cpu_and_nan_on_a_gpu(device):
    x = torch.randn(3, 5, device=device, requires_grad=True)
    target = torch.tensor([1, 5, 2], device=device)
    if device == "cpu":
        with pytest.raises(IndexError, match="target holds class 5; expected 0 to 4 or"):
            cross_entropy(x, target)
        return
    loss = cross_entropy(x, target, reduction="none")
    (dx,) = torch.autograd.grad(loss.nansum(), x)
    assert loss.isnan().tolist() == [False, True, False]
    assert dx.isnan().any(1).tolist() == [False, True, False]


def test_says_which_argument_is_wrong(device):
    x = torch.randn(3, 5, device=device)
    with pytest.raises(TypeError, match=r"target has dtype torch\.float32"):
        cross_entropy(x, torch.rand(3, device=device))
    with pytest.raises(ValueError, match=r"target has shape \(4,\) and logits \(3, 5\)"):
        cross_entropy(x, torch.zeros(4, dtype=torch.int64, device=device))
    with pytest.raises(ValueError, match="reduction is 'max'"):
        cross_entropy(x, torch.zeros(3, dtype=torch.int64, device=device), reduction="max")
