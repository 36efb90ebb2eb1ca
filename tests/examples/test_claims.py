"""A claim is computed: take its kernels' stores away and what an example says must change."""

import threading
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from captures.execute import Execution, execute
from captures.machine import Machine
from captures.normalise import claims
from captures.project import Project
from captures.script import Cell, Script, read_script, script_names
from captures.transcript import Output, read_transcript

PROJECT = Project.find(Path(__file__).parent)
CPU = Machine("cpu", *["any"] * 6)

# Runs before the example: every store and atomic of Triton's interpreter gets zeros.
ZERO_STORES = """
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


def without_stores(script: Script) -> tuple[Execution, bool]:
    """The run, and whether any kernel of it would have stored."""
    before = Cell("zero-stores", 1, frozenset(), ZERO_STORES, 1)
    after = Cell("count-stores", 1, frozenset(), "print(stores_zeroed)", 1)
    cells = (before, *script.cells, after)
    execution = execute(replace(script, cells=cells), CPU, threading.Event())
    assert execution.outputs, f"the stores could not be taken away: {execution.failure}"
    launched = execution.failure is not None or execution.outputs[-1].text != "0"
    return execution, launched


def moved(before: Iterable[Output], after: Iterable[Output]) -> list[str]:
    """The cells whose claims differ, or were never printed."""
    said = {output.cell: claims(output) for output in after}
    return [output.cell for output in before if said.get(output.cell) != claims(output)]


@pytest.mark.parametrize("name", [name for name in script_names(PROJECT) if may_launch(name)])
def test_claims_change_when_kernels_store_zeros(name: str) -> None:
    script = read_script(PROJECT, name)
    if script.needs_gpu:
        pytest.skip("runs only on a GPU")
    transcript = read_transcript(PROJECT, name, "cpu")
    assert transcript is not None, f"run `captures run {name} --machine cpu` first"
    execution, launched = without_stores(script)
    if not launched:
        return  # it shows what happens before a launch, such as a refused argument
    assert moved(transcript.outputs, execution.outputs), (
        f"{script.path}: no claim depends on what its kernels store"
    )


LITERAL = """\
# %% define
import torch
import triton
import triton.language as tl


@triton.jit
def double(x_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(x_ptr + i, 2 * tl.load(x_ptr + i))


x = torch.ones(4)
double[(1,)](x, BLOCK=4)

# %% typed
text = "sum: 8.0"
print(text)

# %% computed
print(f"sum: {x.sum()}")
"""


def test_a_typed_claim_is_told_from_a_computed_one(tmp_path: Path) -> None:
    (tmp_path / "examples" / "a").mkdir(parents=True)
    (tmp_path / "examples" / "a" / "one.py").write_text(LITERAL)
    script = read_script(Project(tmp_path), "a/one")
    honest = execute(script, CPU, threading.Event())
    execution, launched = without_stores(script)
    assert (honest.failure, execution.failure, launched) == (None, None, True)
    assert moved(honest.outputs, execution.outputs) == ["computed"]
