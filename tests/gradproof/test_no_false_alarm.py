"""What is right passes: torch's own operations, and the kernels of this project."""

import pytest
import torch
import torch.nn.functional as F

from gradproof import prove

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def tensors(*shapes):
    generator = torch.Generator().manual_seed(0)
    return tuple(torch.randn(shape, generator=generator).to(DEVICE) for shape in shapes)


def targets(n, classes):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(classes, (n,), generator=generator).to(DEVICE)


def rms_norm(x, weight, eps):
    return F.rms_norm(x, x.shape[-1:], weight, eps)


def layer_norm(x, weight, bias, eps):
    return F.layer_norm(x, x.shape[-1:], weight, bias, eps)


def attention(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def scaled_silu(x, w):
    return w * F.silu(x)


def softmax(x):
    return F.softmax(x, -1)


def log_softmax(x):
    return F.log_softmax(x, -1)


def cumulative_sum(x):
    return x.cumsum(-1)


TORCH = {
    "gelu": (F.gelu, tensors((6, 40))),
    "relu": (F.relu, tensors((6, 40))),
    "scaled_silu": (scaled_silu, tensors((6, 40), ())),
    "softmax": (softmax, tensors((6, 40))),
    "log_softmax": (log_softmax, tensors((6, 40))),
    "rms_norm": (rms_norm, (*tensors((6, 40), 40), 1e-6)),
    "layer_norm": (layer_norm, (*tensors((6, 40), 40, 40), 1e-5)),
    "linear": (F.linear, tensors((6, 40), (24, 40), 24)),
    "matmul": (torch.matmul, tensors((6, 40), (40, 24))),
    "cross_entropy": (F.cross_entropy, (*tensors((6, 40)), targets(6, 40))),
    "mse_loss": (F.mse_loss, tensors((6, 40), (6, 40))),
    "attention": (attention, (*tensors((1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)), True)),
    "rms_norm_of_one_column": (rms_norm, (*tensors((6, 1), 1), 1e-6)),
    "layer_norm_in_half": (
        layer_norm,
        (*(t.bfloat16() for t in tensors((6, 40), 40, 40)), 1e-5),
    ),
    "amax": (torch.amax, (*tensors((6, 40)), -1)),
    "glu": (F.glu, tensors((6, 40))),
    "cumsum": (cumulative_sum, tensors((6, 40))),
}


@pytest.mark.parametrize("name", TORCH)
def test_torch_passes(name):
    op, inputs = TORCH[name]
    report = prove(op, inputs, reference=op)
    assert report.ok, str(report)


def test_without_a_reference_finite_differences_judge():
    report = prove(F.gelu, tensors((3, 5)))
    assert report.ok, str(report)
    assert "finite differences in float64" in str(report)


def test_without_a_reference_a_forward_may_refuse_a_size():
    report = prove(F.conv1d, tensors((2, 3, 20), (4, 3, 5)))
    assert report.ok, str(report)


def test_a_module_is_proved_with_its_parameters():
    torch.manual_seed(0)
    report = prove(torch.nn.Linear(8, 4).to(DEVICE), tensors((3, 8)))
    assert report.ok, str(report)


KERNELS = {
    "gelu": ("gelu", F.gelu, tensors((6, 40))),
    "scaled_silu": ("scaled_silu", scaled_silu, tensors((6, 40), ())),
    "rms_norm": ("rms_norm", rms_norm, (*tensors((6, 40), 40), 1e-6)),
    "layer_norm": ("layer_norm", layer_norm, (*tensors((6, 40), 40, 40), 1e-5)),
    "linear": ("linear", F.linear, tensors((6, 40), (24, 40), 24)),
    "matmul": ("linear", torch.matmul, tensors((6, 40), (40, 24))),
    "softmax": ("softmax", softmax, tensors((6, 40))),
    "cross_entropy": ("cross_entropy", F.cross_entropy, (*tensors((6, 40)), targets(6, 40))),
    "attention": ("attention", attention, TORCH["attention"][1]),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_kernels_of_this_project_pass(name):
    module, reference, inputs = KERNELS[name]
    op = getattr(pytest.importorskip(f"gradkernels.{module}"), name)
    report = prove(op, inputs, reference=reference)
    assert report.ok, str(report)
