"""Every notebook, executed from top to bottom in one namespace, says what was recorded."""

import json
from pathlib import Path

import pytest

from captures.expand import lesson_paths
from captures.notebook import notebook
from captures.project import Project
from captures.script import read_script
from captures.transcript import Output, read_transcript

PROJECT = Project.find(Path(__file__).parent)


def code_cells(page: Path) -> list[dict]:
    """The code cells that run on a CPU."""
    cells = json.loads(notebook(PROJECT, page))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code" and runs_on_cpu(cell)]


def runs_on_cpu(cell: dict) -> bool:
    example = cell["metadata"].get("example")
    return example is None or not read_script(PROJECT, example).needs_gpu


def recorded(cell: dict) -> Output | None:
    if "example" not in cell["metadata"]:
        return None
    transcript = read_transcript(PROJECT, cell["metadata"]["example"], "cpu")
    return transcript.output(cell["metadata"]["cell"]) if transcript else None


@pytest.mark.parametrize("page", lesson_paths(PROJECT), ids=lambda page: page.stem)
def test_a_notebook_says_what_was_recorded(page: Path, alone, assert_claims) -> None:
    cells = code_cells(page)
    source = "\n\n".join("".join(cell["source"]) for cell in cells)
    done = alone(source, 280)
    assert done["status"] == 0, done["stderr"][-2000:]
    assert_claims(done["stdout"], [output for output in map(recorded, cells) if output])
