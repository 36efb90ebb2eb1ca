"""What prove cannot use is refused with the argument's name, what came and what is expected."""

import re
import sys

import pytest
import torch
import torch.nn.functional as F

from gradproof import Case, prove
from gradproof.case import argument_names

X = torch.randn(2, 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, (X,)), "op: expected a callable, got int"),
        ((F.gelu, X), "inputs: expected a tuple of the op's positional arguments, got Tensor"),
        ((torch.nn.GELU, (X,)), "op: you passed the class GELU; pass an instance, such as GELU("),
        ((F.gelu, ({"x": X},)), "got dict; bind keyword arguments beforehand, with functools"),
        ((F.gelu, (X.to("meta"),)), "inputs[0]: expected a strided CPU or CUDA tensor, got"),
        ((F.gelu, (X.to_sparse(),)), "a strided CPU or CUDA tensor, got sparse_coo on cpu"),
        ((F.gelu, (X * torch.nan,)), "inputs[0]: NaN at 6 of 6 places"),
        ((F.gelu, (X[:0],)), "inputs: every floating tensor is empty"),
        ((F.gelu, (X,), F.gelu, []), "probes: none named; there are poison,"),
        ((F.gelu, (torch.arange(3),)), "inputs: no floating-point tensor"),
        ((F.gelu, (X.to(torch.complex64), X)), "inputs[0]: complex tensors"),
        ((F.gelu, (X,), "gelu"), "reference: expected a callable, got str"),
        ((F.gelu, (X,), F.gelu, ["value"]), "no probe named 'value'; there are poison,"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        prove(*arguments)


def test_a_function_is_passed_by_its_apply(square):
    with pytest.raises(TypeError, match=re.escape("the class Square; pass Square.apply")):
        prove(square.__self__, (X,))


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        (lambda x: x.nothing, "reference: raises AttributeError: "),
        (lambda: X, "reference: raises TypeError: "),
        (lambda x: x.square().sum(-1), "the op returns float32[2, 3] and the reference returns "),
        (lambda x: (x * x, x), "the reference returns float64[2, 3] and float64[2, 3]; they must"),
        (lambda x: x.detach() ** 2, "reference: its output is cut off from the inputs"),
        (lambda x: x.half() ** 2, "reference: y comes back in float16 for float64 inputs"),
        (lambda x: x.long(), "reference: expected a floating tensor or a tuple of them back"),
    ],
)
def test_a_reference_that_does_not_fit_is_not_the_ops_fault(square, reference, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        prove(square, (X,), reference)


def test_a_builtin_without_signature_may_be_the_reference_of_a_module():
    assert prove(torch.nn.GELU(), (X,), F.gelu, ["values"]).ok
    assert prove(torch.nn.Linear(3, 2), (X,), F.linear, ["values"]).ok


def raises(x):
    raise KeyError("k")


@pytest.mark.parametrize("probes", [["values"], ["contract"], None])
def test_an_op_that_raises_never_passes(probes):
    report = prove(raises, (X,), probes=probes)
    assert not report.ok
    assert re.search(r"KeyError: 'k' \(at \S*test_case.py:\d+\)", str(report))
    assert str(report).count("forward-raises: ") == 1


def test_an_op_that_ends_the_program_is_an_op_that_raises():
    assert prove(lambda x: sys.exit(3), (X,), probes=["values"]).traps == ("forward-raises",)


def test_where_the_truth_is_finite_nowhere_nothing_is_said_to_hold(square):
    report = prove(square, (torch.full((3,), torch.inf),), torch.square, ["values"])
    assert not report.ok
    assert "nothing could be compared" in str(report)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_inside_a_mode_without_gradients(square, mode):
    with mode():
        assert prove(square, (torch.randn(2, 3),), torch.square, ["values"]).ok


def test_an_op_that_draws_random_numbers_is_not_blamed_for_its_layouts():
    report = prove(torch.nn.Dropout(0.5), (torch.randn(6, 8),), probes=["layouts", "determinism"])
    assert report.ok, str(report)
    assert "draws random numbers" in str(report)


def test_an_op_that_returns_no_tensor_is_refused():
    with pytest.raises(TypeError, match="expected a floating tensor or a tuple of them back"):
        prove(lambda x: 3, (X,))


def test_only_what_requires_a_gradient_is_differentiated():
    a, b = torch.randn(3, requires_grad=True), torch.randn(3)
    report = prove(torch.mul, (a, b), reference=torch.mul, probes=["values"])
    assert report.ok


@pytest.mark.parametrize("asked", [True, False])
def test_a_modules_parameters_are_always_asked_for(asked):
    class Frozen(torch.nn.Linear):
        def forward(self, x):
            return F.linear(x, self.weight.detach(), self.bias)

    x = torch.randn(4, 3, requires_grad=asked)
    report = prove(Frozen(3, 2), (x,), F.linear, ["values"])
    assert report.traps == ("missing-gradient",), str(report)


def test_names_come_from_the_signature(square):
    assert argument_names(lambda left, right: left, 2) == ("left", "right")
    assert argument_names(square, 1) == ("x",)
    assert argument_names(torch.add, 2) == ("input 0", "input 1")


def test_a_case_is_plain_data():
    assert Case(F.gelu, (X,)).reference is None
