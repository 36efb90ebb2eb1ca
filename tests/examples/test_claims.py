"""A claim is computed: take a kernel's stores away and what its example says must change."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import pytest

from captures.execute import Execution, execute
from captures.machine import Machine, probe
from captures.normalise import claims
from captures.project import Project
from captures.script import Cell, Script, read_script, script_names
from captures.transcript import read_transcript

PROJECT = Project.find(Path(__file__).parent)

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


def kernel_examples() -> Iterator[str]:
    for name in script_names(PROJECT):
        text = (PROJECT.examples / f"{name}.py").read_text(encoding="utf-8")
        if "triton" in text or "gradkernels" in text:
            yield name


@lru_cache
def machine() -> Machine:
    return probe(PROJECT, "cpu")


def without_stores(script: Script) -> tuple[Execution, bool]:
    """The run, and whether any kernel of it would have stored."""
    before = Cell("zero-stores", 1, frozenset(), ZERO_STORES, 1)
    after = Cell("count-stores", 1, frozenset(), "print(stores_zeroed)", 1)
    cells = (before, *script.cells, after)
    execution = execute(replace(script, cells=cells), machine(), threading.Event())
    launched = execution.failure is not None or execution.outputs[-1].text != "0"
    return execution, launched


@pytest.mark.parametrize("name", kernel_examples())
def test_claims_change_when_kernels_store_zeros(name: str) -> None:
    script = read_script(PROJECT, name)
    if script.needs_gpu:
        pytest.skip("runs only on a GPU")
    transcript = read_transcript(PROJECT, name, "cpu")
    assert transcript is not None, f"run `captures run {name} --machine cpu` first"
    execution, launched = without_stores(script)
    if not launched:
        return  # it shows what happens before a launch, such as a refused argument
    said = {output.cell: claims(output) for output in execution.outputs}
    moved = [
        output.cell for output in transcript.outputs if said.get(output.cell) != claims(output)
    ]
    assert moved, f"{script.path}: no claim depends on what its kernels store"
