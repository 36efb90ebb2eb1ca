"""Buffers and generators: each call begins with them as given, and they are left as given."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from gradproof import prove


def kept(value, run):
    """Whether `run` leaves every buffer of a module, or the state of a generator, as it was."""

    def bits():
        if isinstance(value, torch.Generator):
            return [value.get_state()]
        return [b.detach().clone() for b in value.buffers()]

    before = bits()
    report = run()
    assert all(map(torch.equal, before, bits()))
    return report


@pytest.mark.parametrize("reference", [None, lambda x: F.batch_norm(x, None, None, training=True)])
def test_batch_norm_in_training_is_right_and_keeps_its_statistics(reference):
    torch.manual_seed(0)
    module = nn.BatchNorm1d(6, affine=False)
    held = module.running_mean
    report = kept(module, lambda: prove(module, (torch.randn(8, 6),), reference))
    assert report.ok, str(report)
    assert module.running_mean is held


def test_a_module_that_an_op_closes_over_keeps_its_buffers():
    torch.manual_seed(0)
    module = nn.BatchNorm1d(6, affine=False)
    report = kept(module, lambda: prove(lambda x: 2 * module(x), (torch.randn(8, 6),)))
    assert report.ok, str(report)


def test_spectral_norm_gives_equal_results_on_equal_calls():
    torch.manual_seed(0)
    module = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 6))
    probes = ["poison", "determinism", "writes", "graph", "sizes"]
    report = kept(module, lambda: prove(module, (torch.randn(4, 8),), probes=probes))
    assert report.ok, str(report)


def dropout(x, generator):
    mask = torch.rand(x.shape, generator=generator) > 0.3
    return x * mask / 0.7


def test_dropout_with_a_generator_of_its_own_is_right():
    generator = torch.Generator().manual_seed(3)
    report = kept(generator, lambda: prove(dropout, (torch.randn(4, 6), generator)))
    assert report.ok, str(report)


def test_a_generator_inside_a_module_is_put_back():
    class Dropout(nn.Module):
        def __init__(self):
            super().__init__()
            self.generator = torch.Generator().manual_seed(3)

        def forward(self, x):
            return dropout(x, self.generator)

    module = Dropout()
    report = kept(module.generator, lambda: prove(module, (torch.randn(4, 6),), dropout_again))
    assert report.ok, str(report)


def dropout_again(x):
    return dropout(x, torch.Generator().manual_seed(3))


class Redrawn(torch.autograd.Function):
    """Dropout whose backward draws a mask of its own."""

    @staticmethod
    def forward(ctx, x, generator):
        ctx.generator = generator
        return dropout(x, generator)

    @staticmethod
    def backward(ctx, dy):
        return dropout(dy, ctx.generator), None


def test_a_mask_drawn_again_in_backward_is_found():
    report = prove(Redrawn.apply, (torch.randn(6, 40), torch.Generator()), probes=["values"])
    assert report.traps == ("wrong-gradient",), str(report)


class Scaled(torch.autograd.Function):
    """x over a moving scale: the forward moves it, and the backward reads it moved."""

    @staticmethod
    def forward(ctx, x, scale):
        y = x / scale
        scale.mul_(0.9).add_(0.1 * x.detach().abs().mean())
        ctx.scale = scale
        return y

    @staticmethod
    def backward(ctx, dy):
        return dy / ctx.scale, None


class Moving(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("scale", torch.ones(()))

    def forward(self, x):
        return Scaled.apply(x, self.scale)


@pytest.mark.parametrize("reference", [None, lambda x: x / 1])
def test_a_backward_that_reads_the_state_after_it_has_moved_is_found(reference):
    report = prove(Moving(), (torch.randn(6, 40),), reference)
    assert "constant-factor" in report.traps, str(report)
    assert "not-deterministic" not in report.traps, str(report)
