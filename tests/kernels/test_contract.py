"""What every operation promises, whatever it computes."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from gradkernels.attention import attention
from gradkernels.cross_entropy import cross_entropy
from gradkernels.gelu import gelu
from gradkernels.layer_norm import layer_norm
from gradkernels.linear import linear, matmul
from gradkernels.rms_norm import rms_norm
from gradkernels.scaled_silu import scaled_silu
from gradkernels.softmax import softmax

TARGET = torch.tensor([4, 0, -100, 2, 2])


def ce(op):
    return lambda x: op(x, TARGET.to(x.device), reduction="none")


# name: operation, torch's counterpart, shapes of its tensors
ROWWISE = {
    "gelu": (gelu, F.gelu, [(5, 6)]),
    "scaled_silu": (scaled_silu, lambda x, w: w * F.silu(x), [(5, 6), ()]),
    "rms_norm": (rms_norm, lambda x, w: F.rms_norm(x, w.shape, w), [(5, 6), (6,)]),
    "layer_norm": (
        layer_norm,
        lambda x, w, b: F.layer_norm(x, w.shape, w, b),
        [(5, 6), (6,), (6,)],
    ),
    "softmax": (softmax, lambda x: F.softmax(x, -1), [(5, 6)]),
    "cross_entropy": (ce(cross_entropy), ce(F.cross_entropy), [(5, 6)]),
}
OPERATIONS = ROWWISE | {
    "linear": (linear, F.linear, [(5, 6), (4, 6), (4,)]),
    "matmul": (matmul, torch.matmul, [(5, 6), (6, 4)]),
    "attention": (attention, F.scaled_dot_product_attention, [(1, 2, 5, 3)] * 3),
    "causal_attention": (
        lambda q, k, v: attention(q, k, v, causal=True),
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(1, 2, 5, 3), (1, 2, 7, 3), (1, 2, 7, 3)],
    ),
}


@pytest.fixture(params=OPERATIONS)
def case(request, device):
    return OPERATIONS[request.param]


@pytest.fixture(params=ROWWISE)
def rowwise(request, device):
    return ROWWISE[request.param]


def tensors(shapes, device, dtype=torch.float32):
    return [torch.randn(s, device=device, dtype=dtype, requires_grad=True) for s in shapes]


def test_gradcheck(case, device):
    op, _, shapes = case
    assert torch.autograd.gradcheck(op, tensors(shapes, device, torch.float64))


def test_same_bits_on_every_run(rowwise, device):
    op, _, shapes = rowwise
    rows = 5 if device == "cpu" else 5000
    given = tensors([(5, 1000 * shapes[0][1])] + [()] * (len(shapes) - 1), device)
    if shapes[1:] and shapes[1]:
        given = tensors([(rows, 1000), *[(1000,)] * (len(shapes) - 1)], device)
    y = op(*given)
    dy = torch.randn_like(y)
    first = [y, *torch.autograd.grad(y, given, dy)]
    for _ in range(3):
        y = op(*given)
        assert all(map(torch.equal, first, [y, *torch.autograd.grad(y, given, dy)]))


def test_writes_to_nothing_it_is_given(case, device):
    op, _, shapes = case
    given = tensors(shapes, device)
    y = op(*given)
    dy = torch.randn_like(y)
    watched = [*given, y, dy]
    before = [t.detach().clone() for t in watched]
    torch.autograd.grad(y, given, dy, retain_graph=True)
    torch.autograd.grad(y, given, dy)
    assert all(map(torch.equal, watched, before))


@pytest.mark.parametrize("dy_requires_grad", [False, True])
def test_a_second_derivative_raises(case, device, dy_requires_grad):
    op, _, shapes = case
    given = tensors(shapes, device)
    y = op(*given)
    dy = torch.ones_like(y).requires_grad_(dy_requires_grad)
    grads = torch.autograd.grad(y, given, dy, create_graph=True)
    for grad in grads:
        with pytest.raises(NotImplementedError, match="first derivative"):
            torch.autograd.grad(grad.sum(), given[0], retain_graph=True, allow_unused=True)
    with pytest.raises(NotImplementedError, match="first derivative"):
        sum(grad.square().sum() for grad in grads).backward()


def test_functional_grad_and_its_second_derivative(case, device):
    op, counterpart, shapes = case
    given = [t.detach() for t in tensors(shapes, device)]
    every = tuple(range(len(given)))
    got = torch.func.grad(lambda *t: op(*t).sum(), every)(*given)
    want = torch.func.grad(lambda *t: counterpart(*t).sum(), every)(*given)
    for g, w in zip(got, want, strict=True):
        assert torch.allclose(g, w, atol=1e-5)
    with pytest.raises(NotImplementedError, match="first derivative"):
        torch.func.grad(lambda t: torch.func.grad(lambda u: op(u, *given[1:]).sum())(t).sum())(
            given[0]
        )


def test_vmap_says_that_it_cannot(case, device):
    op, _, shapes = case
    given = [t.detach() for t in tensors(shapes, device)]
    with pytest.raises(RuntimeError, match="vmap"):
        torch.vmap(lambda t: op(t, *given[1:]))(given[0].expand(3, *shapes[0]))


def test_checkpoint(case, device):
    op, _, shapes = case
    given = tensors(shapes, device)
    plain = torch.autograd.grad(op(*given).sum(), given)
    again = torch.autograd.grad(checkpoint(op, *given, use_reentrant=False).sum(), given)
    assert all(map(torch.equal, plain, again))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_autocast_gives_the_dtypes_that_torch_gives_on_a_gpu(request, rowwise, device, dtype):
    op, _, shapes = rowwise
    name = request.node.callspec.params["rowwise"]
    given = tensors(shapes, device, dtype)
    with torch.autocast(device, torch.bfloat16):
        y = op(*given)
    widened = name not in ("gelu", "scaled_silu") and dtype in (torch.float16, torch.bfloat16)
    assert y.dtype == (torch.float32 if widened else dtype)
    for t, grad in zip(given, torch.autograd.grad(y.sum(), given), strict=True):
        assert grad.dtype == t.dtype


@pytest.mark.gpu
def test_autocast_is_torchs(request, case, device):
    op, counterpart, shapes = case
    if request.node.callspec.params["case"] == "rms_norm" and torch.__version__ < "2.13":
        pytest.skip("torch widens rms_norm inside autocast only since 2.13")
    given = tensors(shapes, device, torch.bfloat16)
    with torch.autocast(device, torch.bfloat16):
        assert op(*given).dtype == counterpart(*given).dtype


def test_a_saved_tensor_changed_in_place_is_noticed(case, device):
    op, _, shapes = case
    if op is softmax:
        pytest.skip("softmax saves its result, not its argument")
    given = tensors(shapes, device)
    y = op(*given)
    with torch.no_grad():
        given[0].mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@pytest.mark.parametrize("layout", ["no rows", "no columns"])
def test_nothing_gives_nothing(request, rowwise, device, layout):
    op, _, shapes = rowwise
    if request.node.callspec.params["rowwise"] == "cross_entropy":
        pytest.skip("its target has five rows; tested with it")
    shapes = [(0, 6) if s == (5, 6) else s for s in shapes]
    if layout == "no columns":
        shapes = [tuple(0 if d == 6 else 5 for d in s) for s in shapes]
    given = tensors(shapes, device)
    y = op(*given)
    grads = torch.autograd.grad(y.sum(), given)
    assert y.numel() == 0
    assert all((g == 0).all() and g.shape == t.shape for g, t in zip(grads, given, strict=True))


def test_says_what_it_got_and_what_is_allowed(case, device):
    op, _, shapes = case
    given = [t.detach() for t in tensors(shapes, device)]
    with pytest.raises(TypeError, match=r"has dtype torch\.int64; expected torch\.float16"):
        op(given[0].long(), *given[1:])
    with pytest.raises(TypeError, match=r"has layout torch\.sparse_coo; expected torch\.strided"):
        op(given[0].to_sparse(), *given[1:])
    with pytest.raises(ValueError, match="is on meta; expected a CUDA device"):
        op(*(t.to("meta") for t in given))
    with pytest.raises((TypeError, ValueError), match=r"a list|meta"):
        op(given[0], *([1.0] for _ in given[1:])) if given[1:] else op(given[0].to("meta"))


@pytest.mark.gpu
def test_arguments_on_two_devices_are_named(device):
    with pytest.raises(ValueError, match="weight is on cpu and x on cuda:0; expected both on one"):
        rms_norm(torch.randn(2, 4, device=device), torch.randn(4))


@pytest.mark.gpu
@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_the_second_gpu_of_two(case):
    op, counterpart, shapes = case
    given = tensors(shapes, "cuda:1")
    got = torch.autograd.grad(op(*given).sum(), given)
    want = torch.autograd.grad(counterpart(*given).sum(), given)
    for g, w in zip(got, want, strict=True):
        assert g.device.index == 1 and torch.allclose(g, w, atol=1e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("dynamic", [False, True])
def test_compiles_whole(case, device, dynamic):
    op, _, shapes = case
    torch.compiler.reset()
    same_when_compiled(op, tensors(shapes, device), dynamic)


@pytest.mark.gpu
@pytest.mark.parametrize("op", [scaled_silu, rms_norm])
def test_atomic_sums_compile_and_start_from_zero(device, op):
    torch.compiler.reset()
    given = tensors([(5, 6), (1,) if op is scaled_silu else (6,)], device)
    same_when_compiled(lambda x, w: op(x, w, dw="atomic"), given, dynamic=False)


@pytest.mark.gpu
def test_the_mean_loss_compiles(device):
    torch.compiler.reset()
    target = TARGET.to(device)
    same_when_compiled(lambda x: cross_entropy(x, target), tensors([(5, 6)], device), False)


def same_when_compiled(op, given, dynamic):
    compiled = torch.compile(op, fullgraph=True, dynamic=dynamic)
    y = op(*given)
    dy = torch.randn_like(y)
    want = [y, *torch.autograd.grad(y, given, dy)]
    for _ in range(2):
        y = compiled(*given)
        got = [y, *torch.autograd.grad(y, given, dy)]
        for g, w in zip(got, want, strict=True):
            assert torch.allclose(g, w, rtol=1e-5, atol=1e-6)
