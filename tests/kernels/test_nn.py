import os
import subprocess
import sys

import pytest
import torch

from gradkernels import nn

PAIRS = [
    (nn.GELU(), torch.nn.GELU()),
    (nn.RMSNorm(8, eps=1e-6), torch.nn.RMSNorm(8, eps=1e-6)),
    (nn.LayerNorm(8), torch.nn.LayerNorm(8)),
    (nn.LayerNorm(8, bias=False), torch.nn.LayerNorm(8, bias=False)),
    (nn.Linear(8, 3), torch.nn.Linear(8, 3)),
    (nn.Softmax(), torch.nn.Softmax(dim=-1)),
]


@pytest.mark.parametrize(("ours", "theirs"), PAIRS, ids=lambda m: type(m).__name__)
def test_takes_the_place_of_torchs_module(device, ours, theirs):
    ours, theirs = ours.to(device), theirs.to(device)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(5, 8, device=device)
    y, want = ours(x), theirs(x)
    assert torch.allclose(y, want, atol=1e-2 if isinstance(ours, nn.Linear) else 1e-5)


def test_the_loss_and_the_scale_are_modules_too(device):
    x, target = torch.randn(5, 8, device=device), torch.tensor([1, 0, 7, -1, 2], device=device)
    loss = nn.CrossEntropyLoss(ignore_index=-1)(x, target)
    assert torch.allclose(loss, torch.nn.CrossEntropyLoss(ignore_index=-1)(x, target))
    silu = nn.ScaledSiLU(device=device)
    silu(x).sum().backward()
    assert silu.weight.grad.shape == ()


def in_a_new_process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def test_without_the_interpreter_the_cpu_is_refused_with_the_way_out():
    code = """
import torch
from gradkernels.gelu import gelu
try:
    gelu(torch.ones(3))
except ValueError as error:
    print(error)
"""
    message = in_a_new_process(code, TRITON_INTERPRET="0")
    assert "x is on cpu; expected a CUDA device" in message and "TRITON_INTERPRET=1" in message


def test_a_module_is_imported_when_it_is_asked_for():
    code = """
import sys
import gradkernels
print("gradkernels.gelu" in sys.modules)
gradkernels.gelu.gelu
print("gradkernels.gelu" in sys.modules, "gradkernels.softmax" in sys.modules)
"""
    assert in_a_new_process(code).split() == ["False", "True", "False"]
