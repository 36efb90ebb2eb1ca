"""Every script that a page offers runs where this project is not installed and says the same."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from captures.normalise import claims
from captures.project import Project
from captures.script import Script, read_script, script_names
from captures.standalone import runnable, standalone
from captures.transcript import Output, read_transcript

PROJECT = Project.find(Path(__file__).parent)
SCRIPTS = [read_script(PROJECT, name) for name in script_names(PROJECT)]
ON_CPU = [script for script in SCRIPTS if not script.needs_gpu]

Runner = Callable[[str, float], dict]


@pytest.fixture(scope="module")
def alone(tmp_path_factory) -> Iterator[Runner]:
    """Runs a script's text in an empty directory."""
    server = subprocess.Popen(
        [sys.executable, "-I", Path(__file__).with_name("alone.py")],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin and server.stdout

    def run(text: str, seconds: float) -> dict:
        script = tmp_path_factory.mktemp("script") / "example.py"
        script.write_text(text, encoding="utf-8")
        empty = tmp_path_factory.mktemp("empty")
        order = {"script": str(script), "directory": str(empty), "seconds": int(seconds)}
        print(json.dumps(order), file=server.stdin, flush=True)
        return json.loads(server.stdout.readline())

    yield run
    server.stdin.close()
    server.wait(10)


def lines(text: str) -> list[str]:
    """Lines that say something; a transcript keeps no blank lines around a cell's output."""
    return [line.rstrip() for line in text.split("\n") if line.strip()]


def expected(script: Script, count: int) -> list[Output]:
    transcript = read_transcript(PROJECT, script.name, "cpu")
    assert transcript is not None, f"run `captures run {script.name} --machine cpu`"
    outputs = [transcript.output(cell.name) for cell in script.cells[:count]]
    return [output for output in outputs if output is not None]


def assert_says_the_same(said: dict, script: Script, count: int) -> None:
    assert said["status"] == 0, said["stderr"][-2000:]
    rest = lines(said["stdout"])
    for output in expected(script, count):
        length = len(lines(output.text))
        printed = Output(output.cell, output.measured, "\n".join(rest[:length]))
        recorded = Output(output.cell, output.measured, "\n".join(lines(output.text)))
        assert claims(printed) == claims(recorded), output.cell
        rest = rest[length:]
    assert rest == []


@pytest.mark.parametrize("script", ON_CPU, ids=lambda script: script.name)
def test_each_script_alone_says_what_its_transcript_says(script: Script, alone: Runner) -> None:
    said = alone(standalone(PROJECT, script), script.time_limit)
    assert_says_the_same(said, script, len(script.cells))


@pytest.mark.parametrize("script", ON_CPU, ids=lambda script: script.name)
def test_each_cell_with_what_stands_before_it_does(script: Script, alone: Runner) -> None:
    for count, cell in enumerate(script.cells[:-1], 1):
        said = alone(runnable(PROJECT, script, cell.name), script.time_limit)
        assert_says_the_same(said, script, count)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_each_script_compiles(script: Script) -> None:
    compile(standalone(PROJECT, script), script.name, "exec")
    for cell in script.cells:
        compile(runnable(PROJECT, script, cell.name), script.name, "exec")


def test_this_project_cannot_be_imported_there(alone: Runner) -> None:
    for name in ("gradkernels.gelu", "gradproof", "captures"):
        said = alone(f"import {name}", 60)
        assert said["status"] != 0 and "ModuleNotFoundError" in said["stderr"]


def test_nothing_was_imported_before_the_script(alone: Runner) -> None:
    script = "import sys\nprint(any(name.startswith('grad') for name in sys.modules))"
    assert alone(script, 60)["stdout"] == "False\n"
