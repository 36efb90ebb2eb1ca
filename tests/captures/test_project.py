from pathlib import Path

import pytest

from captures.fault import Faults
from captures.project import Project


def test_is_found_from_any_directory_inside(sandbox) -> None:
    lesson = sandbox.example("a/one", "# %% x\n").parent
    assert Project.find(lesson) == sandbox.project


def test_outside_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(Faults, match=r"no mkdocs\.yml here or in any directory above"):
        Project.find(tmp_path)
