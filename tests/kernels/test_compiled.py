"""Launches from memory are the launches that Triton would make."""

import pytest
import torch
import triton
import triton.language as tl
from triton import knobs
from triton.runtime.jit import JITFunction

from gradkernels import _compiled
from gradkernels._compiled import keeps_compiled


def scaled_copy_kernel(x_ptr, y_ptr, n, factor, BLOCK: tl.constexpr):
    for start in range(0, n, BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * factor, mask=i < n)


@pytest.fixture
def launches(monkeypatch):
    """A kernel that compiles to forms which note what they are launched with, and the notes."""
    noted = []

    class Form:
        function, packed_metadata = "function", "metadata"

        def __init__(self, number):
            self.number = number

        def run(self, x, y, z, stream, function, metadata, launch, enter, leave, *args):
            assert (function, metadata, launch, enter, leave) == (
                "function",
                "metadata",
                *3 * [None],
            )
            noted.append((self.number, (x, y, z), args, stream))

    def compiles(kernel, *args, grid, warmup, **options):
        form = Form(sum(note == "compiled" for note in noted))
        noted.append("compiled")
        return form

    class Device:
        number = 0

        def get_current_device(self):
            return self.number

        def get_current_stream(self, device):
            return f"stream of {device}"

    monkeypatch.setattr(JITFunction, "run", compiles)
    monkeypatch.setattr(_compiled, "driver", type("driver", (), {"active": Device()}))
    return keeps_compiled(JITFunction(scaled_copy_kernel)), noted


def test_what_was_launched_once_is_launched_from_memory(launches):
    kernel, noted = launches
    for x in (torch.ones(8), torch.zeros(8)):
        kernel[(2,)](x, x, 8, 2.0, 4, num_warps=1)
    (_, (form, grid, args, stream)) = noted
    assert form == 0
    assert grid == (2, 1, 1)
    assert stream == "stream of 0"
    assert args[0] == args[1] == x.data_ptr()
    assert args[2:] == (8, 2.0, 4)


@pytest.mark.parametrize(
    "changed",
    [
        {"x": torch.ones(8, dtype=torch.float64)},
        {"x": torch.ones(9)[1:]},
        {"x": None},
        {"n": 1},
        {"n": True},
        {"n": 8.0},
        {"BLOCK": 8},
        {"options": {"num_warps": 2}},
        {"options": {"num_stages": 1}},
        {"device": 1},
        {"grid": (3,)},
    ],
    ids=str,
)
def test_what_another_form_may_serve_is_compiled_anew(launches, changed, monkeypatch):
    kernel, noted = launches

    def launch(x=torch.ones(8), n=8, BLOCK=4, options={"num_warps": 1}, device=0, grid=(2,)):  # noqa: B006, B008
        monkeypatch.setattr(_compiled.driver.active, "number", device)
        kernel[grid](x, x, n, 2.0, BLOCK, **options)

    launch()
    launch(**changed)
    assert noted == ["compiled", "compiled"]


def test_a_hook_hears_of_every_launch(launches, monkeypatch):
    kernel, noted = launches
    x = torch.ones(8)
    kernel[(2,)](x, x, 8, 2.0, 4)
    for hook in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        with monkeypatch.context() as hooked:
            hooked.setattr(hook, "calls", [print])
            kernel[(2,)](x, x, 8, 2.0, 4)
            assert noted.pop() == "compiled"  # Triton's own launch


def test_a_warmup_launches_nothing(launches):
    kernel, noted = launches
    x = torch.ones(8)
    kernel[(2,)](x, x, 8, 2.0, 4)
    form = kernel.warmup(x, x, 8, 2.0, 4, grid=(2,))
    assert form.number == 1
    assert noted == ["compiled", "compiled"]


def test_shapes_that_never_recur_do_not_fill_the_memory(launches, monkeypatch):
    monkeypatch.setattr(_compiled, "MOST_REMEMBERED", 2)
    kernel, noted = launches
    x = torch.ones(8)
    for n in (2, 3, 4, 4, 2):
        kernel[(1,)](x, x, n, 2.0, 4)
    assert [note if note == "compiled" else note[0] for note in noted] == [
        *["compiled"] * 3,
        2,
        "compiled",
    ]


def test_the_interpreter_is_left_as_it_is():
    class Interpreted:
        """What `triton.jit` makes in the interpreter is no JITFunction."""

    kernel = Interpreted()
    assert keeps_compiled(kernel) is kernel
    assert not vars(kernel)


@pytest.mark.gpu
def test_every_launch_is_right_on_a_gpu():
    kernel = keeps_compiled(triton.jit(scaled_copy_kernel))
    for _ in range(2):
        for dtype in (torch.float32, torch.float64, torch.int32):
            for offset, n in ((0, 64), (1, 63), (0, 1), (0, 16), (3, 16), (4, 48)):
                for factor in (2, 1, 16):
                    x = torch.arange(64, device="cuda").to(dtype)[offset : offset + n]
                    y = torch.full((80,), -1, dtype=dtype, device="cuda")
                    kernel[(1,)](x, y[offset:], n, factor, 16)
                    assert torch.equal(y[offset : offset + n], x * factor)
                    assert (y[offset + n :] == -1).all()


@pytest.mark.gpu
def test_memory_that_no_kernel_can_reach_is_refused_on_a_gpu():
    kernel = keeps_compiled(triton.jit(scaled_copy_kernel))
    x = torch.ones(16, device="cuda")
    kernel[(1,)](x, torch.empty_like(x), 16, 2, 16)
    with pytest.raises(ValueError, match="cpu tensor"):
        kernel[(1,)](x, torch.ones(16), 16, 2, 16)
