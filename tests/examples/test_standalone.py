"""Every script that a page offers runs where this project is not installed and says the same."""

from pathlib import Path

import pytest

from captures.project import Project
from captures.script import Script, read_script, script_names
from captures.standalone import runnable, standalone
from captures.transcript import Output, read_transcript

PROJECT = Project.find(Path(__file__).parent)
SCRIPTS = [read_script(PROJECT, name) for name in script_names(PROJECT)]
ON_CPU = [script for script in SCRIPTS if not script.needs_gpu]


def recorded(script: Script, count: int) -> list[Output]:
    transcript = read_transcript(PROJECT, script.name, "cpu")
    assert transcript is not None, f"run `captures run {script.name} --machine cpu`"
    outputs = [transcript.output(cell.name) for cell in script.cells[:count]]
    return [output for output in outputs if output is not None]


@pytest.mark.parametrize("script", ON_CPU, ids=lambda script: script.name)
def test_each_script_alone_says_what_its_transcript_says(
    script: Script, alone, assert_claims
) -> None:
    done = alone(standalone(PROJECT, script), script.time_limit)
    assert done["status"] == 0, done["stderr"][-2000:]
    assert_claims(done["stdout"], recorded(script, len(script.cells)))


@pytest.mark.parametrize("script", ON_CPU, ids=lambda script: script.name)
def test_each_cell_with_what_stands_before_it_does(script: Script, alone, assert_claims) -> None:
    for count, cell in enumerate(script.cells[:-1], 1):
        done = alone(runnable(PROJECT, script, cell.name), script.time_limit)
        assert done["status"] == 0, f"{cell.name}: {done['stderr'][-2000:]}"
        assert_claims(done["stdout"], recorded(script, count))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_each_script_compiles(script: Script) -> None:
    compile(standalone(PROJECT, script), script.name, "exec")
    for cell in script.cells:
        compile(runnable(PROJECT, script, cell.name), script.name, "exec")


def test_this_project_cannot_be_imported_there(alone) -> None:
    for name in ("gradkernels.gelu", "gradproof", "captures"):
        done = alone(f"import {name}", 60)
        assert done["status"] != 0 and "ModuleNotFoundError" in done["stderr"]


def test_nothing_of_it_was_imported_before_the_script(alone) -> None:
    script = "import sys\nprint(any(name.startswith('grad') for name in sys.modules))"
    assert alone(script, 60)["stdout"] == "False\n"
