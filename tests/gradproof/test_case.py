"""What prove cannot use is refused with the argument's name, what came and what is expected."""

import re

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
        ((F.gelu, (torch.arange(3),)), "inputs: no floating-point tensor"),
        ((F.gelu, (X.to(torch.complex64), X)), "inputs[0]: complex tensors"),
        ((F.gelu, (X,), "gelu"), "reference: expected a callable, got str"),
        ((F.gelu, (X,), F.gelu, ["value"]), "no probe named 'value'; there are poison,"),
    ],
)
def test_refused(arguments, message):
    with pytest.raises((TypeError, ValueError), match=re.escape(message)):
        prove(*arguments)


def test_an_op_that_returns_no_tensor_is_refused():
    with pytest.raises(TypeError, match="expected a floating tensor or a tuple of them back"):
        prove(lambda x: 3, (X,))


def test_only_what_requires_a_gradient_is_differentiated():
    a, b = torch.randn(3, requires_grad=True), torch.randn(3)
    report = prove(torch.mul, (a, b), reference=torch.mul, probes=["values"])
    assert report.ok


def test_names_come_from_the_signature(square):
    assert argument_names(lambda left, right: left, 2) == ("left", "right")
    assert argument_names(square, 1) == ("x",)
    assert argument_names(torch.add, 2) == ("input 0", "input 1")


def test_a_case_is_plain_data():
    assert Case(F.gelu, (X,)).reference is None
