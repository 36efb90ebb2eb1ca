import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from gradkernels import _tiles
from gradkernels.linear import linear, matmul

OUT = 21


def rounded(*shape, device, dtype):
    return torch.randn(shape, device=device, dtype=torch.float64).to(dtype)


def bounds(x, w, b, dy):
    # A sum of n products in whatever order errs by n roundings of the sum of sizes (Higham,
    # Accuracy and Stability, section 3.1); two more for what an MMA's aligned addition cuts off.
    # Each result is rounded once when stored.
    out, n = w.shape
    rows = max(1, x.numel() // max(1, n))
    X, DY = x.abs().reshape(-1, n), dy.abs().reshape(-1, out)
    y = (X @ w.abs().T + b.abs()).view(dy.shape)
    dx, dw, db = (DY @ w.abs()).view(x.shape), DY.T @ X, DY.sum(0)
    steps = [n + 3, out + 2, rows + 2, rows + 2]
    return [(size, k * size) for size, k in zip((y, dx, dw, db), steps, strict=True)]


def test_agrees_with_fp64(device, agree, arrange, dtype, shape, layout, dy_layout):
    x = arrange(rounded(*shape, device=device, dtype=dtype), layout)
    w = arrange(rounded(OUT, shape[-1], device=device, dtype=dtype), layout)
    b = rounded(2 * OUT, device=device, dtype=dtype)[::2]
    dy = arrange(rounded(*shape[:-1], OUT, device=device, dtype=dtype), dy_layout)
    agree(linear, F.linear, [x, w, b], dy, bounds, "linear")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("layout", ["contiguous", "transposed", "sliced"])
def test_matmul_agrees_with_fp64(device, agree, arrange, dtype, layout):
    x, dy = (
        rounded(3, 11, 19, device=device, dtype=dtype),
        rounded(3, 11, 7, device=device, dtype=dtype),
    )
    w = rounded(19, 7, device=device, dtype=dtype)
    given = [arrange(x, layout), arrange(w, layout)]

    def without_bias(x, w, dy):
        y, dx, dw, _ = bounds(x, w.T, w.new_zeros(7), dy)
        return [y, dx, tuple(size.T for size in dw)]

    agree(matmul, torch.matmul, given, arrange(dy, layout), without_bias, "matmul")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("rows, n, out", [(1000, 700, 900), (4096, 1024, 2048), (17, 5000, 40)])
@pytest.mark.gpu
def test_many_tiles(device, agree, dtype, rows, n, out):
    given = [rounded(*s, device=device, dtype=dtype) for s in ((rows, n), (out, n), (out,))]
    dy = rounded(rows, out, device=device, dtype=dtype)
    agree(linear, F.linear, given, dy, bounds, "linear/many")


def test_several_tiles_and_steps(device, agree):
    given = [
        rounded(*s, device=device, dtype=torch.float32) for s in ((150, 40), (140, 40), (140,))
    ]
    agree(linear, F.linear, given, torch.randn(150, 140, device=device), bounds, "linear/tiles")


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40), st.booleans(), st.booleans())
def test_any_shape(rows, n, out, transpose_x, transpose_w):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, w = torch.randn(rows, n, device=device), torch.randn(out, n, device=device)
    x = x.T.contiguous().T if transpose_x else x
    w = w.T.contiguous().T if transpose_w else w
    x.requires_grad_(), w.requires_grad_()
    y, want = linear(x, w), F.linear(x, w)
    assert y.shape == want.shape and torch.allclose(y, want, atol=1e-4)
    dy = torch.randn_like(y)
    got, want = (torch.autograd.grad(v, (x, w), dy) for v in (y, want))
    for g, e in zip(got, want, strict=True):
        assert g.shape == e.shape and torch.allclose(g, e, atol=1e-4)


def test_fp32_is_not_rounded_to_tf32(device):
    # 1 + 2⁻¹² has 13 bits of significand: TF32 keeps 11 and would answer 1.
    x = torch.full((16, 16), 1 + 2**-12, device=device)
    assert torch.equal(linear(x, torch.eye(16, device=device)), x)


@pytest.mark.parametrize("asked", ["x", "weight", "bias"])
def test_computes_only_the_gradient_asked_for(device, asked):
    shapes = {"x": (5, 9), "weight": (4, 9), "bias": (4,)}
    given = {name: torch.randn(s, device=device) for name, s in shapes.items()}
    every = {name: t.clone().requires_grad_() for name, t in given.items()}
    given[asked].requires_grad_()
    linear(**given).square().sum().backward()
    linear(**every).square().sum().backward()
    assert torch.equal(given[asked].grad, every[asked].grad)


def test_a_vector_gives_a_vector(device):
    x, w = torch.randn(9, device=device), torch.randn(4, 9, device=device)
    assert torch.allclose(linear(x, w), F.linear(x, w), atol=1e-5)
    assert torch.allclose(matmul(x, w.T), F.linear(x, w), atol=1e-5)


@pytest.mark.parametrize("rows, n, out", [(0, 4, 3), (3, 0, 4), (3, 4, 0), (0, 0, 0)])
def test_empty_sizes_are_torchs(device, rows, n, out):
    given = [torch.randn(s, device=device).requires_grad_() for s in ((rows, n), (out, n), (out,))]
    y, want = linear(*given), F.linear(*given)
    assert torch.equal(y, want)
    dy = torch.randn_like(y)
    got, want = (torch.autograd.grad(v, given, dy) for v in (y, want))
    for g, e in zip(got, want, strict=True):
        assert g.shape == e.shape and torch.allclose(g, e, atol=1e-6)


@pytest.mark.gpu
def test_an_input_of_more_elements_than_an_int32_counts(device):
    rows, n = 2**15 + 3, 2**16 + 8
    x = torch.zeros(rows, n, device=device, dtype=torch.float16)
    x[-1, -1] = 2
    w = torch.ones(16, n, device=device, dtype=torch.float16).requires_grad_()
    y = linear(x, w)
    assert y[-1].eq(2).all() and y[:-1].eq(0).all()
    y.backward(torch.ones_like(y))
    assert w.grad[:, -1].eq(2).all() and w.grad[:, :-1].eq(0).all()


def test_says_which_argument_is_wrong(device):
    x, w, b = (torch.randn(s, device=device) for s in ((2, 8), (3, 7), (4,)))
    with pytest.raises(ValueError, match=r"x has shape \(2, 8\) and weight \(3, 7\); expected"):
        linear(x, w)
    with pytest.raises(ValueError, match=r"bias has shape \(4,\); expected \(3,\)"):
        linear(x[:, :7], w, b)
    with pytest.raises(TypeError, match=r"weight has dtype torch\.float64 and x torch\.float32"):
        linear(x[:, :7], w.double())
    with pytest.raises(ValueError, match=r"x has shape \(2, 8\) and w \(3, 7\); expected"):
        matmul(x, w)
    with pytest.raises(ValueError, match=r"x has shape \(\) and weight"):
        linear(x[0, 0], w)


def test_autocast_casts_as_torch_does(device):
    x, w, b = (torch.randn(s, device=device).requires_grad_() for s in ((2, 8), (3, 8), (3,)))
    with torch.autocast(device, torch.bfloat16):
        y, want = linear(x, w, b), F.linear(x, w, b)
    assert y.dtype == want.dtype == torch.bfloat16
    y.sum().backward()
    assert x.grad.dtype == w.grad.dtype == b.grad.dtype == torch.float32


@pytest.mark.gpu
@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize("n", [64, 37])
def test_compiles_whole(device, dynamic, n):
    torch.compiler.reset()
    inputs = [rounded(*s, device=device, dtype=torch.bfloat16) for s in ((50, n), (90, n), (90,))]
    inputs = [t.requires_grad_() for t in inputs]
    dy = rounded(50, 90, device=device, dtype=torch.bfloat16)
    compiled = torch.compile(linear, fullgraph=True, dynamic=dynamic)
    got, want = (torch.autograd.grad(op(*inputs), inputs, dy) for op in (compiled, linear))
    assert all(map(torch.equal, got, want))


# Compiled for a GPU with a copy engine, which need not be here, and printed in its first form.
FIRST_FORM = """
import compile_matrix, torch, triton
from gradkernels.linear import matmul_kernel
from triton.tools.tensor_descriptor import TensorDescriptor

gpu = compile_matrix.Pretence()
gpu.capability = 90
triton.runtime.driver.set_active(gpu)
t = TensorDescriptor.from_tensor(torch.empty(64, 64, dtype=torch.float16), [64, 64])
constants = (False, False, 64, 64, 64, 4)
compiled = matmul_kernel.warmup(t, t, None, t, 64, 64, 64, *constants, grid=(1,))
print(compiled.asm["source"])
"""


def test_the_result_is_stored_to_without_a_call_in_between():
    # torch.compile of torch 2.11 takes all that goes into a call for written where its result is,
    # then looks for the descriptor's strides among the kernel's arguments, and fails.
    here = Path(__file__).parent
    path = os.pathsep.join(map(str, (here, here.parent.parent / "src")))
    done = subprocess.run(
        [sys.executable, "-c", FIRST_FORM],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    arguments = re.search(r"tt\.func public @matmul_kernel\((.*)\)", done.stdout)[1]
    given = re.findall(r"%(\w+): !tt\.tensordesc", arguments)
    assert given == ["a", "b", "c"]
    assert set(re.findall(r"tt\.descriptor_store %(\w+)", done.stdout)) == {"c"}


def test_same_bits_on_every_run(device):
    inputs = [rounded(*s, device=device, dtype=torch.float32) for s in ((70, 90), (80, 90), (80,))]
    inputs = [t.requires_grad_() for t in inputs]
    dy = rounded(70, 80, device=device, dtype=torch.float32)
    first, *others = (torch.autograd.grad(linear(*inputs), inputs, dy) for _ in range(3))
    assert all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))


def test_without_a_copy_engine(agree, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("a GPU with a copy engine needs memory set aside for descriptors made on it")
    without = _tiles.Tiler(copy_engine=False, shared_memory=65536, traced=False)
    monkeypatch.setattr(_tiles, "tiler_of", lambda device: without)
    given = [torch.randn(s) for s in ((150, 40), (140, 40), (140,))]
    agree(linear, F.linear, given, torch.randn(150, 140), bounds, "linear/plain")
