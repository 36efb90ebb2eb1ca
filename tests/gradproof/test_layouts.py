"""The layout of one input is asked about alone too: some ops choose their path by all of them."""

import torch

from gradproof import prove


class Scale(torch.autograd.Function):
    """w·x, whose weight is read in order where all else is contiguous."""

    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * x

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        read = w
        if x.is_contiguous() and dy.is_contiguous():
            read = w.as_strided(w.shape, (1,))
        return read * dy, (x * dy).sum(0)


def scale(x, w):
    return w * x


def test_a_fast_path_that_reads_one_input_in_order_is_found():
    report = prove(Scale.apply, (torch.randn(6, 8), torch.randn(8)), scale, ["layouts"])
    assert report.traps == ("input-strides-ignored",), str(report)
