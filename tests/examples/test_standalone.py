"""Every script that a page offers runs where this project is not installed and says the same."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

from captures.project import Project
from captures.script import Script, read_script, script_names
from captures.standalone import INTERPRETS, runnable, standalone
from captures.transcript import Output, read_transcript

PROJECT = Project.find(Path(__file__).parent)
SCRIPTS = [read_script(PROJECT, name) for name in script_names(PROJECT)]
ON_CPU = [script for script in SCRIPTS if not script.needs_gpu]
ON_GPU_ALONE = [script for script in SCRIPTS if script.needs_gpu]


def recorded(script: Script, count: int) -> list[Output]:
    transcript = read_transcript(PROJECT, script.name, "cpu")
    assert transcript is not None, f"run `captures run {script.name} --machine cpu`"
    outputs = [transcript.output(cell.name) for cell in script.cells[:count]]
    return [output for output in outputs if output is not None]


@pytest.mark.parametrize("script", ON_CPU, ids=lambda script: script.name)
def test_each_script_says_alone_what_its_transcript_says(
    script: Script, alone, assert_claims
) -> None:
    """Each cell with what stands before it, and the whole."""
    texts = [runnable(PROJECT, script, cell.name) for cell in script.cells[:-1]]
    texts.append(standalone(PROJECT, script))
    parsed = [ast.parse(text).body for text in texts]
    for count, text in enumerate(texts, 1):
        if any(begins_as(longer, parsed[count - 1]) for longer in parsed[count:]):
            continue  # that one's run is this one's and more
        done = alone(text, script.time_limit)
        assert done["status"] == 0, f"{script.cells[count - 1].name}: {done['stderr'][-2000:]}"
        assert_claims(done["stdout"], recorded(script, count))


def begins_as(longer: list[ast.stmt], shorter: list[ast.stmt]) -> bool:
    """Whether `longer` does all that `shorter` does, and defines or imports more at most."""
    rest = list(map(ast.dump, shorter))
    for statement in longer:
        if rest and ast.dump(statement) == rest[0]:
            rest.pop(0)
        elif rest and not isinstance(statement, DEFINITIONS) and ast.dump(statement) != GUARD:
            return False
    return not rest


DEFINITIONS = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
GUARD = ast.dump(ast.parse(INTERPRETS.code).body[0])


@pytest.mark.parametrize(
    ("longer", "as_before"),
    [
        ("x = 1\nprint(x)\nprint(2)", True),
        ("import os\nx = 1\ndef f(): pass\nprint(x)\nprint(2)", True),
        ("x = 1\nprint(2)\nprint(x)", False),
        ("x = 2\nprint(x)", False),
        ("x = 1", False),
    ],
)
def test_a_longer_script_stands_for_a_shorter_one_only_if_it_begins_with_it(longer, as_before):
    assert begins_as(ast.parse(longer).body, ast.parse("x = 1\nprint(x)").body) is as_before


@pytest.mark.parametrize("script", ON_GPU_ALONE, ids=lambda script: script.name)
def test_each_script_that_cannot_run_here_compiles(script: Script) -> None:
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


def without_gpu(text: str, directory: Path) -> subprocess.CompletedProcess:
    """As a reader runs it who has no GPU and has set nothing."""
    path = directory / "example.py"
    path.write_text(text, encoding="utf-8")
    env = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}
    return subprocess.run(
        [sys.executable, "-I", path],
        cwd=directory,
        env=env | {"CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
    )


def test_without_a_gpu_a_script_interprets_by_itself(assert_claims, tmp_path) -> None:
    script = next(script for script in ON_CPU if script.name == "graph_node/invisible")
    done = without_gpu(standalone(PROJECT, script), tmp_path)
    assert done.returncode == 0, done.stderr
    assert_claims(done.stdout, recorded(script, len(script.cells)))


def test_without_a_gpu_a_script_that_needs_one_ends_in_one_line(tmp_path) -> None:
    done = without_gpu(standalone(PROJECT, ON_GPU_ALONE[0]), tmp_path)
    assert done.returncode == 1
    assert done.stderr == "This needs a CUDA GPU, and torch finds none.\n"
