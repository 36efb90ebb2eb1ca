"""What a console block of the reference shows is what its command says; `...` leaves lines out."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/reference/gradproof.md"
TEXT = PAGE.read_text(encoding="utf-8")
FILE = re.compile(r'^```python title="([\w.]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n", re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    """Each command of the page's console blocks, and what is shown below it."""
    said = []
    for block in CONSOLE.findall(TEXT):
        _, *parts = COMMAND.split(block)
        said += zip(parts[::2], parts[1::2], strict=True)
    return said


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A folder with every file that the page shows."""
    folder = tmp_path_factory.mktemp("reader")
    for name, source in FILE.findall(TEXT):
        (folder / name).write_text(source, encoding="utf-8")
    return folder


SAID = commands()


@pytest.mark.parametrize(("command", "shown"), SAID, ids=[command for command, _ in SAID])
def test_a_command_says_what_the_page_shows(folder, command: str, shown: str) -> None:
    said = stdout(command, folder)
    assert doctest.OutputChecker().check_output(shown, said, doctest.ELLIPSIS), said


def test_the_reference_names_each_option_of_the_command(folder) -> None:
    options = set(re.findall(r"--[a-z]+", stdout("gradproof --help", folder)))
    assert set(re.findall(r"^\| `(--[a-z]+)` \|", TEXT, re.MULTILINE)) == options - {"--help"}


def stdout(command: str, folder: Path) -> str:
    programs = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        command,
        shell=True,
        cwd=folder,
        env={**os.environ, "PATH": programs, "COLUMNS": "80"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=120,
    )
    return done.stdout
