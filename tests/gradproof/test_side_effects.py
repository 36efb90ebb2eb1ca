"""prove leaves nothing behind."""

import io
import random
import sys
import warnings

import pytest
import torch
import torch.nn.functional as F

from gradproof import prove


def test_random_state_inputs_grad_and_flags_are_as_before():
    x = torch.randn(4, 6).t().requires_grad_()
    x.grad = torch.ones_like(x)
    before = x.detach().clone(), x._version, x.stride()
    state, python_state = torch.get_rng_state(), random.getstate()
    flags = torch.is_grad_enabled(), torch.get_default_dtype(), list(warnings.filters)
    prove(F.gelu, (x,), reference=F.gelu)
    assert torch.equal(x, before[0])
    assert (x._version, x.stride()) == before[1:]
    assert torch.equal(x.grad, torch.ones_like(x))
    assert torch.equal(torch.get_rng_state(), state)
    assert random.getstate() == python_state
    assert (torch.is_grad_enabled(), torch.get_default_dtype(), list(warnings.filters)) == flags
    assert not torch.are_deterministic_algorithms_enabled()


def test_the_functions_backward_is_put_back(square):
    function = square.__self__
    original = function.__dict__["backward"]
    prove(square, (torch.randn(3, 4),), reference=torch.square, probes=["contract"])
    assert function.__dict__["backward"] is original


def test_module_parameters_keep_their_values_and_grad():
    module = torch.nn.Linear(4, 3)
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    prove(module, (torch.randn(2, 4),), probes=["values", "writes", "accumulation"])
    for name, parameter in module.named_parameters():
        assert torch.equal(parameter, before[name])
        assert parameter.grad is None


def test_works_inside_no_grad():
    with torch.no_grad():
        assert prove(F.gelu, (torch.randn(3, 4),), reference=F.gelu, probes=["values"]).ok


def test_the_progress_line_makes_way_for_what_the_op_prints(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def talks(x):
        print("hello")
        return x * x

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", terminal)
    prove(talks, (torch.randn(3, 4),), reference=torch.square, probes=["values"])
    assert sys.stdout is sys.stderr is terminal
    *shown, last = terminal.getvalue().split("\n")
    assert any("talks: values …" in line for line in shown)
    assert {line.rpartition("\033[K")[2] for line in shown} == {"hello"}
    assert last.endswith("\033[K")


@pytest.mark.parametrize("inputs", [(1,), [], "x"])
def test_an_argument_at_fault_shows_no_frames_of_ours_but_the_call(inputs):
    with pytest.raises((TypeError, ValueError)) as raised:
        prove(F.gelu, inputs)
    assert [entry.name for entry in raised.traceback][1:] == ["prove"]
