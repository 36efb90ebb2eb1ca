"""A claim is computed: take its kernels' stores away and what an example says must change."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from captures.project import Project
from captures.script import Script, read_script, script_names
from captures.standalone import runnable
from captures.transcript import Output, Transcript, read_transcript

PROJECT = Project.find(Path(__file__).parent)

# Runs before the example: every store and atomic of Triton's interpreter gets zeros.
ZERO_STORES = """
import sys
import types

import numpy
from triton.runtime import interpreter

_real = interpreter._interpreter
stores_zeroed = 0

def _store(pointers, values, mask):
    global stores_zeroed
    stores_zeroed += 1
    _real.store(pointers, numpy.zeros_like(values), mask)

def _atomic(operation, pointers, values, mask, semantics):
    global stores_zeroed
    stores_zeroed += 1
    return _real.atomic_rmw(operation, pointers, numpy.zeros_like(values), mask, semantics)

interpreter._interpreter = types.SimpleNamespace(
    **{name: getattr(_real, name) for name in dir(_real) if not name.startswith("__")}
    | {"store": _store, "atomic_rmw": _atomic}
)
"""


def may_launch(name: str) -> bool:
    text = (PROJECT.examples / f"{name}.py").read_text(encoding="utf-8")
    return "triton" in text or "gradkernels" in text


COUNT_STORES = 'print("stores zeroed:", stores_zeroed, file=sys.stderr, flush=True)'


def without_stores(alone, text: str, seconds: float) -> tuple[dict, bool]:
    """The run, and whether any kernel of it would have stored."""
    done = alone(text, seconds, before=ZERO_STORES, after=COUNT_STORES)
    _, found, count = done["stderr"].rpartition("stores zeroed: ")
    assert found, f"the stores could not be taken away: {done['stderr'][-2000:]}"
    return done, done["status"] != 0 or int(count) > 0


def moved(done: dict, outputs: Iterable[Output], assert_claims) -> bool:
    """Whether a claim differs, or was never printed."""
    if done["status"] != 0:
        return True
    try:
        assert_claims(done["stdout"], outputs)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("name", [name for name in script_names(PROJECT) if may_launch(name)])
def test_claims_change_when_kernels_store_zeros(name: str, alone, assert_claims) -> None:
    script = read_script(PROJECT, name)
    if script.needs_gpu:
        pytest.skip("runs only on a GPU")
    transcript = read_transcript(PROJECT, name, "cpu")
    assert transcript is not None, f"run `captures run {name} --machine cpu` first"
    launched = False
    for text, outputs in growing(script, transcript):
        done, launched = without_stores(alone, text, script.time_limit)
        if moved(done, outputs, assert_claims):
            return
    # One that launches nothing shows what happens before a launch, such as a refused argument.
    assert not launched, f"{script.path}: no claim depends on what its kernels store"


def growing(script: Script, transcript: Transcript) -> Iterator[tuple[str, list[Output]]]:
    """The script up to its first claim, its second, and so on, with the claims so far."""
    outputs = []
    for cell in script.cells:
        output = transcript.output(cell.name)
        if output is not None and output.text:
            outputs.append(output)
            yield runnable(PROJECT, script, cell.name), list(outputs)


KERNEL = """\
import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))


x = torch.ones(4)
double[(1,)](x, BLOCK=4)
"""
TYPED = KERNEL + 'text = "sum: 8.0"\nprint(text)\n'
COMPUTED = KERNEL + 'print(f"sum: {x.sum()}")\n'


@pytest.mark.parametrize(("text", "is_computed"), [(TYPED, False), (COMPUTED, True)])
def test_a_typed_claim_is_told_from_a_computed_one(
    text: str, is_computed: bool, alone, assert_claims
) -> None:
    claim = [Output("claim", False, "sum: 8.0")]
    assert not moved(alone(text, 60), claim, assert_claims)
    done, launched = without_stores(alone, text, 60)
    assert launched
    assert moved(done, claim, assert_claims) is is_computed
