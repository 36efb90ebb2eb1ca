"""Each fault under its own name, whatever the size at which it is met."""

import pytest
import torch
import torch.nn.functional as F

from gradproof import prove


def randn(*shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(0))


def op(formula, gradient):
    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return formula(x)

        @staticmethod
        def backward(ctx, dy):
            return gradient(*ctx.saved_tensors, dy)

    return Op.apply


def mean_square(x):
    return (x * x).mean()


@pytest.mark.parametrize("shape", [(3, 4), (6, 40), (16, 128)])
def test_a_forgotten_mean_is_a_constant_factor_at_any_size(shape):
    broken = op(mean_square, lambda x, dy: 2 * x * dy)
    report = prove(broken, (randn(*shape),), mean_square, probes=["values"])
    assert report.traps == ("constant-factor",), str(report)


@pytest.mark.parametrize("most", [10, 100])
@pytest.mark.parametrize("reference", [None, torch.tanh])
def test_a_clamp_that_no_plain_dy_reaches_shows_under_a_loss_scale(most, reference):
    broken = op(torch.tanh, lambda x, dy: (dy * (1 - x.tanh() ** 2)).clamp(-most, most))
    report = prove(broken, (randn(6, 40),), reference)
    assert report.traps == ("not-linear-in-dy",), str(report)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_an_honest_half_is_not_overtaxed_by_a_loss_scale(dtype):
    report = prove(F.silu, (randn(6, 40).to(dtype),), F.silu, probes=["values"])
    assert report.ok, str(report)


def gelu_by_tanh(x, dy):
    with torch.enable_grad():
        x = x.detach().requires_grad_()
        return torch.autograd.grad(F.gelu(x, approximate="tanh"), x, dy)


@pytest.mark.parametrize(("rows", "columns"), [(6, 40), (2, 8), (64, 64)])
def test_an_approximation_is_no_rounding(rows, columns):
    report = prove(op(F.gelu, gelu_by_tanh), (randn(rows, columns),), F.gelu, probes=["values"])
    assert report.traps == ("wrong-gradient",), str(report)


@pytest.mark.parametrize("shape", [(6, 40), (2, 8), (64, 64)])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    ("formula", "gradient"),
    [
        (F.silu, lambda x, s, dy: dy * s * (1 + x * (1 - s))),
        (lambda x: x @ x.mT, lambda x, s, dy: (dy + dy.mT) @ x),
    ],
    ids=["silu", "product"],
)
def test_operands_squeezed_through_half_are_one(formula, gradient, shape, dtype):
    def squeezed(x, dy):
        x, dy = (t.to(dtype).to(t.dtype) for t in (x, dy))
        return gradient(x, x.sigmoid(), dy)

    report = prove(op(formula, squeezed), (randn(*shape),), formula, probes=["values"])
    assert report.traps == ("rounded-through-half",), str(report)


def test_an_error_that_fades_with_size_has_no_ragged_edge():
    def with_n(x, dy):
        return (dy / x.std(-1))[..., None] * (x - x.mean(-1, keepdim=True)) / x.shape[-1]

    def std(x):
        return x.std(-1)

    report = prove(op(std, with_n), (randn(6, 40),), std)
    assert report.traps == ("constant-factor",), str(report)


def test_what_is_wrong_at_the_size_given_is_not_said_of_other_sizes():
    def shifted(x, by):
        return torch.roll(x, by, -1) * x.new_ones(x.shape[-1]).index_fill(0, _first(x), 0)

    def _first(x):
        return torch.arange(min(1, x.shape[-1]))

    def lagged(x):
        return x - 0.5 * shifted(x, 1)

    broken = op(lagged, lambda x, dy: dy - 0.5 * shifted(dy, 1))
    report = prove(broken, (randn(6, 40),), lagged)
    assert report.traps == ("wrong-gradient",), str(report)


def test_numbers_drawn_again_in_backward_are_a_wrong_gradient():
    def dropout(x):
        return x * (torch.rand(x.shape) > 0.3) / 0.7

    report = prove(op(dropout, lambda x, dy: dropout(dy)), (randn(6, 40),))
    assert report.traps == ("wrong-gradient",), str(report)
