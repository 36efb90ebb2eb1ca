"""What the tests of scripts and notebooks share: a place without this project, and claims."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from captures.normalise import claims
from captures.transcript import Output

Runner = Callable[..., dict]


@pytest.fixture(scope="session")
def alone(tmp_path_factory) -> Iterator[Runner]:
    """Runs a script's text in an empty directory where this project cannot be imported.

    Code to run before and after it, in a namespace of its own, may be given.
    """
    server = subprocess.Popen(
        [sys.executable, "-I", Path(__file__).with_name("alone.py")],
        cwd=tmp_path_factory.mktemp("elsewhere"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdin and server.stdout

    def run(text: str, seconds: float, before: str = "", after: str = "") -> dict:
        script = tmp_path_factory.mktemp("script") / "example.py"
        script.write_text(text, encoding="utf-8")
        empty = tmp_path_factory.mktemp("empty")
        order = {"script": str(script), "directory": str(empty), "seconds": int(seconds)}
        order |= {"before": before, "after": after}
        print(json.dumps(order), file=server.stdin, flush=True)
        return json.loads(server.stdout.readline())

    yield run
    server.stdin.close()
    server.wait(10)


def _lines(text: str) -> list[str]:
    """Lines that say something; a transcript keeps no blank lines around a cell's output."""
    return [line.rstrip() for line in text.split("\n") if line.strip()]


@pytest.fixture(scope="session")
def assert_claims() -> Callable[[str, Iterable[Output]], None]:
    """Holds what was printed against the recorded outputs, one after the other."""

    def check(stdout: str, outputs: Iterable[Output]) -> None:
        rest = _lines(stdout)
        for output in outputs:
            recorded = _lines(output.text)
            printed, rest = rest[: len(recorded)], rest[len(recorded) :]
            assert said(output, printed) == said(output, recorded), output.cell
        assert rest == []

    def said(output: Output, lines: list[str]) -> str:
        return claims(Output(output.cell, output.measured, "\n".join(lines)))

    return check
