"""Mistakes of people who had not seen the probes, and what the first report made of them.

Small forms of those that were missed, misnamed or named without need at first sight.
"""

import torch
import torch.nn.functional as F

from gradproof import prove


def function(forward, backward):
    """An autograd.Function that saves its inputs."""

    class Op(torch.autograd.Function):
        @staticmethod
        def forward(ctx, *inputs):
            ctx.save_for_backward(*inputs)
            return forward(*inputs)

        @staticmethod
        def backward(ctx, dy):
            return backward(ctx, *ctx.saved_tensors, dy)

    return Op.apply


def tensors(*shapes):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def test_a_lost_second_derivative_does_not_explain_a_wrong_first_one():
    def backward(ctx, x, dy):
        s = x.sigmoid()
        dx = dy * s * (1 + F.silu(x) * (1 - s))  # the activation where x should stand
        return dx.detach()

    report = prove(function(F.silu, backward), tensors((6, 16)), reference=F.silu)
    assert set(report.traps) == {"wrong-gradient", "double-backward-lost"}, str(report)


def test_an_activation_written_over_what_was_saved_is_pointed_at():
    class InPlace(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            z = x * 2
            y = F.silu(z, inplace=True)
            ctx.save_for_backward(z)
            return y

        @staticmethod
        def backward(ctx, dy):
            (z,) = ctx.saved_tensors
            s = z.sigmoid()
            return 2 * dy * s * (1 + z * (1 - s))

    report = prove(InPlace.apply, tensors((6, 16)), lambda x: F.silu(2 * x), probes=["values"])
    assert report.traps == ("wrong-gradient",), str(report)
    assert "the output itself is saved for backward" in str(report)


def test_what_is_wrong_at_the_size_given_is_no_limit_of_size():
    def causal(scores):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
        return scores.masked_fill(~mask, -torch.inf).softmax(-1)

    def backward(ctx, scores, dy):
        p = causal(scores).tril(-1)  # the diagonal is lost
        return p * (dy - (p * dy).sum(-1, keepdim=True))

    report = prove(function(causal, backward), tensors((2, 12, 12)), reference=causal)
    assert report.traps[0] == "wrong-gradient", str(report)
    assert "size-limit" not in report.traps


def test_an_index_in_a_narrow_type_is_a_limit_of_size_and_no_accumulator():
    def amax(x):
        return x.amax(-1)

    def backward(ctx, x, dy):
        at = x.argmax(-1, keepdim=True).to(torch.int8) % x.shape[-1]  # −128 for the place 128
        return torch.zeros_like(x).scatter_(-1, at.long(), dy.unsqueeze(-1))

    report = prove(function(amax, backward), tensors((5, 96)), reference=amax)
    assert report.traps[0] == "size-limit", str(report)
    assert "half-precision-accumulator" not in report.traps


def l2_norm(x, eps=1e-6):
    return x / (x.square().sum(-1, keepdim=True) + eps).sqrt()


def test_an_eps_in_another_place_shows_where_a_row_is_zero():
    def backward(ctx, x, dy):
        norm = x.square().sum(-1, keepdim=True).sqrt() + 1e-6  # eps outside the root
        return dy / norm - x * (dy * x).sum(-1, keepdim=True) / norm**3

    report = prove(function(l2_norm, backward), tensors((6, 40)), reference=l2_norm)
    assert report.traps[0] == "special-values", str(report)


def test_noise_that_depends_on_the_place_in_the_batch_is_no_disagreement():
    def mask(x):
        generator = torch.Generator().manual_seed(1)
        return (torch.rand(x.numel(), generator=generator) > 0.25).reshape(x.shape)

    dropout = function(lambda x: x * mask(x), lambda ctx, x, dy: dy * mask(x))
    report = prove(dropout, tensors((5, 12)))
    assert report.ok, str(report)


def test_a_mean_over_the_rows_that_count_names_their_share():
    target = torch.tensor([3, 0, -100, 1, -100, 2, 5])

    def cross_entropy(x):
        return F.cross_entropy(x, target[: len(x)])

    def backward(ctx, x, dy):
        kept = (target[: len(x)] >= 0).unsqueeze(-1)
        p = x.softmax(-1) - F.one_hot(target[: len(x)].clamp(min=0), x.shape[-1])
        return dy * p * kept / len(x)

    report = prove(
        function(cross_entropy, backward), tensors((7, 8)), cross_entropy, probes=["values"]
    )
    assert report.traps == ("constant-factor",), str(report)


def test_a_weight_without_gradient_where_the_data_needs_none():
    def backward(ctx, x, w, dy):
        return (dy * w, (dy * x).sum(0)) if ctx.needs_input_grad[0] else (None, None)

    report = prove(function(torch.mul, backward), tensors((6, 8), 8), reference=torch.mul)
    assert report.traps[0] == "ignores-needs-input-grad", str(report)
    assert "is None" in str(report)
