"""What the op is not to blame for: the reference fails as well, or nobody could do better."""

import functools

import pytest
import torch
import torch.nn.functional as F

from gradproof import prove


def tensors(*shapes):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


@pytest.mark.parametrize(
    ("op", "shapes"),
    [(F.conv1d, ((2, 3, 8), (4, 3, 3), 4)), (F.conv2d, ((2, 3, 6, 7), (4, 3, 3, 3), 4))],
)
def test_sizes_that_the_reference_refuses_where_there_are_numbers(op, shapes):
    # On the meta device a bias of none or of one fits any convolution.
    report = prove(op, tensors(*shapes), op, probes=["sizes"])
    assert report.ok, str(report)


def squares_of_nothing(x):
    centred = x - x.mean(-1, keepdim=True)
    return centred.square().sum(-1) / (x.shape[-1] - 1), x.mean(-1)  # −0 and NaN of no columns


@pytest.mark.parametrize(
    ("op", "inputs", "reference"),
    [
        (F.pixel_shuffle, (*tensors((1, 4, 2, 3)), 2), F.pixel_shuffle),  # its backward raises
        (F.group_norm, (*tensors((2, 4, 5)), 2, *tensors(4, 4)), F.group_norm),  # NaN for weights
        (F.avg_pool1d, (*tensors((2, 3, 8)), 2), lambda x, k: x.unfold(-1, k, k).mean(-1)),
        (functools.partial(torch.var_mean, dim=-1), tensors((6, 8)), squares_of_nothing),
    ],
    ids=["the reference raises", "the reference is wrong", "torch refuses", "undefined"],
)
def test_an_empty_input_on_which_nobody_has_an_answer(op, inputs, reference):
    report = prove(op, inputs, reference, probes=["sizes"])
    assert report.ok, str(report)


def test_a_gradient_that_is_nan_where_the_reference_adds_up_nothing_is_an_alarm():
    def normalised(x, w):
        rstd = (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()
        return w[:, None] * x * rstd

    class Mean(torch.autograd.Function):
        """Right, but that its dw asks for the mean of dy."""

        @staticmethod
        def forward(ctx, x, w):
            ctx.save_for_backward(x, w)
            return normalised(x, w)

        @staticmethod
        def backward(ctx, dy):
            with torch.enable_grad():
                x, w = (t.detach().requires_grad_() for t in ctx.saved_tensors)
                dx, dw = torch.autograd.grad(normalised(x, w), (x, w), dy)
            return dx, dw * (dy.mean() - dy.mean() + 1)

    report = prove(Mean.apply, tensors((6, 8), 6), normalised, probes=["sizes"])
    assert report.traps == ("empty-input",), str(report)
    assert "dw is not finite" in str(report)


def solvable():
    a, b = tensors((4, 4), (4, 3))
    return a + 4 * torch.eye(4), b


@pytest.mark.parametrize("reference", [False, True])
def test_a_matrix_of_equal_entries_is_singular_in_any_layout(reference):
    for op, inputs in ((torch.linalg.inv, solvable()[:1]), (torch.linalg.solve, solvable())):
        report = prove(op, inputs, op if reference else None, probes=["layouts"])
        assert report.ok, str(report)


def gaussian(x):
    return (x * x).sum(-1).exp()


@pytest.mark.parametrize(
    ("op", "x"),
    [(gaussian, tensors((6, 20))[0]), (torch.linalg.det, solvable()[0])],
    ids=["exp", "det"],
)
def test_nobody_is_asked_for_a_number_beyond_float32(op, x):
    report = prove(op, (x,), probes=["values", "sizes"])
    assert report.ok, str(report)


def rms_norm(x):
    return F.rms_norm(x, x.shape[-1:])  # whose eps is that of the dtype


@pytest.mark.parametrize("reference", [None, rms_norm])
def test_a_constant_that_depends_on_the_dtype(reference):
    report = prove(rms_norm, tensors((6, 40)), reference, probes=["values", "sizes", "layouts"])
    assert report.ok, str(report)


class Summed(torch.autograd.Function):
    """w[ids], whose backward keeps one of the gradients of each row."""

    @staticmethod
    def forward(ctx, ids, w):
        ctx.save_for_backward(ids)
        ctx.shape = w.shape
        return w[ids]

    @staticmethod
    def backward(ctx, dy):
        (ids,) = ctx.saved_tensors
        dw = dy.new_zeros(ctx.shape)
        dw[ids] = dy
        return None, dw


def test_no_layout_is_named_where_the_contiguous_run_is_wrong_alike():
    ids = torch.randint(0, 10, (6, 5), generator=torch.Generator().manual_seed(0))
    report = prove(Summed.apply, (ids, *tensors((10, 8))), lambda ids, w: F.embedding(ids, w))
    assert report.traps == ("contributions-lost",), str(report)
