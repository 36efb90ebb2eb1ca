"""A script that says it needs torch alone says the same where triton is absent."""

import threading
from dataclasses import replace
from pathlib import Path

import pytest

from captures.execute import execute
from captures.forked import ForkServer
from captures.machine import Machine
from captures.normalise import claims
from captures.project import Project
from captures.script import Cell, read_script, script_names
from captures.transcript import read_transcript

PROJECT = Project.find(Path(__file__).parent)
SCRIPTS = [read_script(PROJECT, name) for name in script_names(PROJECT)]
TORCH_ONLY = [script.name for script in SCRIPTS if script.needs == "torch"]

CPU = Machine("cpu", *["any"] * 6)
NO_TRITON = "import sys; sys.modules['triton'] = None"


@pytest.fixture(scope="module")
def server():
    with ForkServer(PROJECT, "cpu") as server:
        yield server


@pytest.mark.parametrize("name", TORCH_ONLY)
def test_says_the_same_without_triton(name: str, server) -> None:
    script = read_script(PROJECT, name)
    transcript = read_transcript(PROJECT, name, "cpu")
    assert transcript is not None, f"run `captures run {name} --machine cpu` first"
    cells = (Cell("no-triton", 1, frozenset(), NO_TRITON, 1), *script.cells)
    execution = execute(replace(script, cells=cells), CPU, threading.Event(), server)
    assert execution.failure is None, execution.failure
    assert [*map(claims, execution.outputs[1:])] == [*map(claims, transcript.outputs)]
