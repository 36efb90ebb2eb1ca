"""prove leaves nothing behind."""

import random
import warnings

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
