"""Kernels are run on the GPU where there is one, and in Triton's interpreter where there is none.

The interpreter proves logic. What it gets wrong about numbers (it truncates fp32 to bf16, and
multiplies matrices exactly) only a GPU can show: there, every test that asks for `device` counts as
`gpu`, and `--report FILE` writes what they found.
"""

import itertools
import math
import os
import platform
from collections import defaultdict
from pathlib import Path

import pytest
import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def pytest_addoption(parser):
    parser.addoption("--report", help="write the GPU report to this file")


def pytest_configure(config):
    # What overflows in silence on a GPU, and is meant to, NumPy reports in the interpreter.
    interpreter = "ignore:.* encountered in :RuntimeWarning:triton.runtime.interpreter"
    config.addinivalue_line("filterwarnings", interpreter)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    for item in items:
        if DEVICE == "cuda" and "device" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.gpu)
        elif DEVICE == "cpu" and item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="needs a CUDA GPU"))


@pytest.fixture
def device():
    torch.manual_seed(0)
    return DEVICE


DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
LAYOUTS = ("contiguous", "transposed", "sliced", "padded", "expanded")


def pytest_generate_tests(metafunc):
    """Whoever asks for `dtype`, `shape`, `layout` and `dy_layout` gets the whole matrix."""
    names = ("dtype", "shape", "layout", "dy_layout")
    if not set(names) <= set(metafunc.fixturenames):
        return
    arranged = [((2, 5, 33), *ls) for ls in itertools.product(LAYOUTS, LAYOUTS)]
    odd = [(s, "contiguous", "contiguous") for s in ((1, 1), (1, 40), (70, 3), (3, 128), (2, 1025))]
    wide = [((7, 4096), "contiguous", "contiguous")] if DEVICE == "cuda" else []
    cases = [(dtype, *case) for dtype in DTYPES for case in arranged + odd + wide]
    metafunc.parametrize(names, cases, ids=lambda v: str(v).removeprefix("torch."))


@pytest.fixture
def arrange():
    return _arrange


def _arrange(t, layout):
    """The values of `t` in other strides ("expanded": its first row over and over)."""
    if layout == "transposed":
        return t.movedim(0, -1).contiguous().movedim(-1, 0)
    if layout == "sliced":
        return torch.stack([t, torch.full_like(t, math.nan)], dim=-1)[..., 0]
    if layout == "unaligned":
        return torch.cat([t.new_full((1,), math.nan), t.reshape(-1)])[1:].view(t.shape)
    if layout == "padded":  # rows as part of longer ones, and no row aligned
        return torch.nn.functional.pad(t, (1, 6), value=math.nan)[..., 1:-6]
    if layout == "expanded":
        return t[:1].expand(t.shape)
    assert layout == "contiguous"
    return t.contiguous()


@pytest.fixture
def narrow(monkeypatch):
    """Rows of more than 64 elements are wide ones: taken block by block, or shared by programs."""
    from gradkernels import _launch

    monkeypatch.setattr(_launch, "MAX_BLOCK", 64)
    monkeypatch.setattr(_launch, "TILE_BYTES", 256)
    monkeypatch.setattr(_launch, "_persistent_tile", _launch._persistent_tile.__wrapped__)


@pytest.fixture
def agree(record_property):
    """Compare an operation and its gradients with an fp64 reference.

    `bounds(*inputs, dy)` gives, for y and each gradient in turn, a pair (a, b) of fp64 tensors or
    numbers, and the error allowed is

        a · u(stored dtype) + b · u(accumulator)

    where u is the relative error of one rounding, 2^-p with p bits of significand (2^(1-p) in
    the interpreter, which truncates where a GPU rounds). So a is the size of what is rounded to
    the tensor's own dtype and b that of what is summed or rounded in fp32 (fp64 for fp64),
    times the number of such steps.
    """

    def check(op, reference, inputs, dy, bounds, name):
        inputs = [t.detach().requires_grad_() for t in inputs]
        exact = [t.detach().double().requires_grad_() for t in inputs]
        y, want = op(*inputs), reference(*exact)
        assert y.dtype == inputs[0].dtype and y.shape == want.shape
        got = (y, *torch.autograd.grad(y, inputs, dy))
        want = (want, *torch.autograd.grad(want, exact, dy.double()))
        with torch.no_grad():
            allowed = bounds(*exact, dy.double())
        for what, g, w, (a, b) in zip(["y", *"123"], got, want, allowed, strict=False):
            finfo = torch.finfo(g.dtype)
            wide = torch.float64 if inputs[0].dtype == torch.float64 else torch.float32
            tolerance = a * unit(g.dtype) + b * unit(wide) + finfo.tiny
            error = (g.double() - w).abs()
            assert g.isfinite().all(), f"{what} is not finite"
            worst = (error / tolerance).max().item() if error.numel() else 0.0
            label = what if what == "y" else f"grad{what}"
            record_property("worst", f"{name} {label} {str(inputs[0].dtype)[6:]} {worst:.3g}")
            assert worst <= 1, f"{label}: error {error.max():.3g} is {worst:.3g} of what is allowed"

    return check


def unit(dtype):
    return torch.finfo(dtype).eps / (2 if DEVICE == "cuda" else 1)


def pytest_runtest_logreport(report):
    if report.when == "call" or report.outcome == "failed":
        _counts[report.outcome] += 1
    for key, value in report.user_properties if report.when == "call" else ():
        if key == "worst":
            op, result, dtype, worst = value.split()
            _worst[op, result, dtype] = max(_worst[op, result, dtype], float(worst))


_counts: dict[str, int] = defaultdict(int)
_worst: dict[tuple[str, str, str], float] = defaultdict(float)


def pytest_sessionfinish(session):
    path = session.config.getoption("--report", None)
    if path is None or hasattr(session.config, "workerinput") or DEVICE == "cpu":
        return
    Path(path).write_text(_report(session.config.rootpath), encoding="utf-8")


def _report(root):
    import triton

    from captures.fingerprint import tree_fingerprint

    lines = [
        f"fingerprint: {tree_fingerprint([root / 'src/gradkernels', root / 'tests/kernels'])}",
        f"device: {torch.cuda.get_device_name()}",
        f"torch: {torch.__version__}",
        f"triton: {triton.__version__}",
        f"python: {platform.python_version()}",
        *(f"{outcome}: {count}" for outcome, count in sorted(_counts.items())),
        "",
        "Worst error as a share of what is allowed (tests/kernels/conftest.py says how much):",
        "",
        *(f"{' '.join(key)}: {worst:.3f}" for key, worst in sorted(_worst.items())),
    ]
    return "\n".join(lines) + "\n"
