"""A small project of its own for every test."""

import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

from captures.fingerprint import fingerprint
from captures.machine import Machine
from captures.project import Project
from captures.script import read_script
from captures.transcript import Output, Transcript, transcript_path, write_transcript

CPU = Machine("cpu", "a processor", "none", "2.13.0", "3.7.1", "3.11.0", "Linux")


@dataclass(frozen=True)
class Sandbox:
    """Writes files of a project under ``tmp_path``; ``cpu`` is a machine that needs no torch."""

    project: Project
    cpu: Machine = CPU

    def write(self, path: str, text: str) -> Path:
        file = self.project.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text).lstrip("\n"), encoding="utf-8")
        return file

    def example(self, name: str, text: str) -> Path:
        return self.write(f"examples/{name}.py", text)

    def record(
        self,
        name: str,
        outputs: dict[str, str],
        *,
        machine: str = "cpu",
        figures: dict[str, list[str]] | None = None,
    ) -> Path:
        """Write the transcript that a run on a machine of this kind would have left."""
        script = read_script(self.project, name)
        provenance = {
            "device": {"gpu": "a card", "cpu": "a processor"}[machine],
            "driver": "none",
            "torch": "2.13.0",
            "triton": "3.7.1",
            "python": "3.11.0",
            "platform": "Linux",
            "date": "2026-11-29",
            "duration": "1.5 s",
        }
        said = tuple(
            Output(
                cell.name,
                cell.measured,
                outputs[cell.name],
                tuple((figures or {}).get(cell.name, ())),
            )
            for cell in script.cells
            if cell.name in outputs
        )
        code = fingerprint(self.project, script)
        write_transcript(self.project, Transcript(name, machine, provenance, code, said))
        return transcript_path(self.project, name, machine)

    def state(self) -> dict[str, bytes]:
        """Every file's content by its path, caches left out."""
        return {
            self.project.relative(path): path.read_bytes()
            for path in sorted(self.project.root.rglob("*"))
            if path.is_file() and ".cache" not in path.parts
        }


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return new_sandbox(tmp_path)


@pytest.fixture(scope="module")
def shared_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """For tests of a module that only look at what is in it."""
    return new_sandbox(tmp_path_factory.mktemp("shared"))


def new_sandbox(path: Path) -> Sandbox:
    (path / "mkdocs.yml").write_text("site_name: sandbox\n")
    for directory in ("examples", "src", "docs"):
        (path / directory).mkdir()
    return Sandbox(Project(path.resolve()))
