import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from gradkernels import _tiles
from gradkernels.attention import attention, attention_backward, attention_forward

DTYPES = [torch.float16, torch.bfloat16, torch.float32, torch.float64]
# B, H, Sq, Sk, D
SHAPES = [(1, 2, 5, 7, 3), (2, 1, 40, 33, 16), (1, 1, 33, 70, 24), (1, 2, 140, 20, 8)]
LARGE = [(2, 3, 300, 513, 64), (2, 3, 513, 300, 80), (1, 2, 130, 131, 200)]


def rounded(*shape, device, dtype):
    return torch.randn(shape, device=device, dtype=torch.float64).to(dtype)


def probabilities(q, k, causal):
    s = q @ k.mT / math.sqrt(q.shape[-1])
    if causal:
        s = s.masked_fill(torch.ones_like(s, dtype=torch.bool).triu(1), -math.inf)
    return s.softmax(-1)


def reference(causal):
    return lambda q, k, v: probabilities(q, k, causal) @ v


def bounds(causal):
    def sizes(q, k, v, do):
        # A score is a sum of D products and is then scaled by log₂ e and taken from a maximum:
        # D + 4 roundings of Σ |q| |k|, which the exponential turns into a relative error of P,
        # once more through the logsumexp. Sums over keys and queries add a rounding a term.
        (Sq, D), Sk = q.shape[2:], k.shape[2]
        scale = 1 / math.sqrt(D)
        score = (q.abs() @ k.abs().mT).max().item() * scale
        steps = Sq + Sk + D + 8 + 3 * (D + 4) * max(score, 1.0)
        # P and dS are rounded to the inputs' dtype before they are multiplied, and O is where Δ
        # is made from it, so they are off by roundings of these sizes, and each result by one.
        P = probabilities(q, k, causal)
        o = P @ v.abs()
        ds = P * (do.abs() @ v.abs().mT + 2 * (o * do.abs()).sum(-1, keepdim=True))
        dq, dk, dv = ds @ k.abs() * scale, ds.mT @ q.abs() * scale, P.mT @ do.abs()
        return [(2 * size, steps * size) for size in (o, dq, dk, dv)]

    return sizes


def draw(shape, device, dtype):
    B, H, Sq, Sk, D = shape
    lengths = (Sq, Sk, Sk, Sq)
    return [rounded(B, H, S, D, device=device, dtype=dtype) for S in lengths]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_agrees_with_fp64(device, agree, dtype, shape, causal):
    *given, do = draw(shape, device, dtype)
    op = lambda q, k, v: attention(q, k, v, causal)  # noqa: E731
    agree(op, reference(causal), given, do, bounds(causal), "attention")


@pytest.mark.gpu
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", LARGE)
def test_many_blocks(device, agree, dtype, shape, causal):
    test_agrees_with_fp64(device, agree, dtype, shape, causal)


@pytest.mark.parametrize("layout", ["transposed", "sliced", "unaligned", "expanded"])
@pytest.mark.parametrize("which", ["given", "dy"])
def test_any_layout(device, agree, arrange, layout, which):
    *given, do = draw((2, 3, 20, 18, 16), device, torch.float32)
    if which == "given":
        given = [arrange(t, layout) for t in given]
    else:
        do = arrange(do, layout)
    agree(attention, reference(False), given, do, bounds(False), "attention/layouts")


def test_heads_that_lie_behind_the_sequence(device, agree):
    # (B, S, H, D) in memory, as a projection leaves it: read in place.
    *given, do = (t.transpose(1, 2).contiguous().transpose(1, 2)
                  for t in draw((2, 3, 20, 18, 16), device, torch.float32))  # fmt: skip
    assert all(_tiles.tiler(t).aligned(t) is t for t in given)
    agree(attention, reference(False), given, do, bounds(False), "attention/layouts")


def test_without_a_copy_engine(agree, monkeypatch):
    if torch.cuda.is_available():
        pytest.skip("a GPU with a copy engine needs memory set aside for descriptions made on it")
    without = _tiles.Tiler(copy_engine=False, shared_memory=65536, traced=False)
    monkeypatch.setattr(_tiles, "tiler_of", lambda device: without)
    *given, do = draw((1, 2, 40, 33, 16), "cpu", torch.float32)
    op = lambda q, k, v: attention(q, k, v, True)  # noqa: E731
    agree(op, reference(True), given, do, bounds(True), "attention/plain")


def test_saves_the_logarithm_of_the_sum_of_exponentials(device):
    q, k, v, _ = draw((1, 2, 40, 33, 16), device, torch.float64)
    _, lse = attention_forward(q, k, v, False, 0.25)
    assert torch.allclose(lse[:, :40].view(1, 2, 40), (0.25 * q @ k.mT).logsumexp(-1))


def test_scores_far_from_zero(device):
    # exp(-200) and exp(200) are 0 and ∞ in fp32: only differences to the maximum may be exponents.
    q = torch.full((1, 1, 20, 16), 10.0, device=device)
    k = torch.full((1, 1, 18, 16), 10.0, device=device) + torch.randn(18, 1, device=device) / 100
    for sign in (1, -1):
        given = [t.clone().requires_grad_() for t in (sign * q, k, torch.randn_like(k))]
        exact = [t.detach().double().requires_grad_() for t in given]
        got = torch.autograd.grad(attention(*given).sum(), given)
        want = torch.autograd.grad(reference(False)(*exact).sum(), exact)
        for g, w in zip(got, want, strict=True):
            # A score of 400 is off by up to 400 × 2⁻²⁴ × the 20 steps that make it.
            assert torch.allclose(g.double(), w, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("scale", [0.3, 0.0, -0.7])
def test_any_scale(device, scale):
    given = [t.float().requires_grad_() for t in draw((1, 2, 9, 12, 8), device, torch.float64)[:3]]
    y = attention(*given, scale=scale)
    want = (scale * given[0] @ given[1].mT).softmax(-1) @ given[2]
    assert torch.allclose(y, want, atol=1e-5)
    dy = torch.randn_like(y)
    got, want = (torch.autograd.grad(o, given, dy) for o in (y, want))
    for g, w in zip(got, want, strict=True):
        assert torch.allclose(g, w, atol=1e-5)


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 20), st.booleans())
def test_any_shape_is_torchs(Sq, Sk, D, causal):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    *given, do = draw((1, 2, Sq, Sk, D), device, torch.float32)
    given = [t.requires_grad_() for t in given]
    y = attention(*given, causal)
    want = F.scaled_dot_product_attention(*given, is_causal=causal)
    assert torch.allclose(y, want, atol=1e-5)
    got, want = (torch.autograd.grad(o, given, do) for o in (y, want))
    for g, w in zip(got, want, strict=True):
        assert torch.allclose(g, w, atol=1e-4)


@pytest.mark.parametrize(
    "shape", [(0, 2, 3, 4, 8), (1, 0, 3, 4, 8), (1, 2, 0, 4, 8), (1, 2, 3, 0, 8)]
)
def test_empty_sizes(device, shape):
    *given, do = draw(shape, device, torch.float32)
    given = [t.requires_grad_() for t in given]
    y = attention(*given)
    assert y.shape == do.shape and (y == 0).all()
    for g, t in zip(torch.autograd.grad(y, given, do), given, strict=True):
        assert g.shape == t.shape and (g == 0).all()


@pytest.mark.parametrize("asked", [0, 1, 2])
def test_computes_only_the_gradient_asked_for(device, asked):
    q, k, v, do = draw((1, 2, 20, 18, 16), device, torch.float32)
    o, lse = attention_forward(q, k, v, True, 0.25)
    needs = [i == asked for i in range(3)]
    some = attention_backward(do, q, k, v, o, lse, True, 0.25, *needs)
    every = attention_backward(do, q, k, v, o, lse, True, 0.25, True, True, True)
    assert [g is not None for g in some] == needs
    assert torch.equal(some[asked], every[asked])


@pytest.mark.parametrize("causal", [False, True])
def test_same_bits_on_every_run(device, causal):
    S = 70 if device == "cpu" else 2000
    *given, do = draw((1, 2, S, S, 16), device, torch.float32)
    given = [t.requires_grad_() for t in given]
    first, *others = (torch.autograd.grad(attention(*given, causal), given, do) for _ in range(3))
    assert all(torch.equal(a, b) for other in others for a, b in zip(first, other, strict=True))


@pytest.mark.gpu
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_whole(device, dynamic):
    torch.compiler.reset()
    *given, do = draw((2, 2, 100, 90, 64), device, torch.bfloat16)
    given = [t.requires_grad_() for t in given]
    compiled = torch.compile(attention, fullgraph=True, dynamic=dynamic)
    got, want = (torch.autograd.grad(op(*given, True), given, do) for op in (compiled, attention))
    assert all(map(torch.equal, got, want))


def test_autocast_casts_as_torch_does(device):
    given = [t.requires_grad_() for t in draw((1, 1, 5, 7, 16), device, torch.float32)[:3]]
    with torch.autocast(device, torch.bfloat16):
        y, want = attention(*given), F.scaled_dot_product_attention(*given)
    assert y.dtype == want.dtype == torch.bfloat16
    assert all(g.dtype == torch.float32 for g in torch.autograd.grad(y.sum(), given))


def test_says_which_argument_is_wrong(device):
    q, k, v, _ = draw((1, 2, 5, 7, 4), device, torch.float32)
    with pytest.raises(ValueError, match=r"q has shape \(2, 5, 4\), k \(1, 2, 7, 4\) and v"):
        attention(q[0], k, v)
    with pytest.raises(ValueError, match=r"and v \(1, 2, 6, 4\); expected \(B, H, Sq, D\)"):
        attention(q, k, v[:, :, 1:])
    with pytest.raises(ValueError, match=r"and v \(1, 2, 7, 3\); expected"):
        attention(q, k, v[..., 1:])
    with pytest.raises(ValueError, match="q has heads of size 257; expected at most 256"):
        attention(*(torch.zeros(1, 1, 2, 257, device=device) for _ in range(3)))
    with pytest.raises(TypeError, match=r"k has dtype torch\.float64 and q torch\.float32"):
        attention(q, k.double(), v)
