"""Execute one example in a process of its own and record what each cell said, or how it failed."""

import contextlib
import json
import os
import re
import selectors
import signal
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from captures.figures import themed
from captures.forked import LOST, ForkServer
from captures.machine import Machine
from captures.normalise import normalise
from captures.script import Cell, Script
from captures.transcript import Output

PRINT_LIMIT = 1_000_000  # bytes; a transcript is for reading
_LAST_LINES = 12
_SIGNALS = {number.value: number.name for number in signal.Signals}

# What may stand on stderr without failing the capture, and why.
_TOLERATED = {
    # Said once by matplotlib on a machine where it never ran before.
    "font cache": re.compile(r"Matplotlib is building the font cache; this may take a moment\."),
}


@dataclass(frozen=True)
class Failure:
    """How an example failed: in which ``cell``, at which ``line`` of its file, saying what last."""

    cell: str
    line: int
    message: str
    last_output: str


@dataclass(frozen=True)
class Execution:
    """``figures`` holds the plots by their final file name; ``failure`` is None where all went
    well; ``duration`` is in seconds."""

    outputs: tuple[Output, ...]
    figures: Mapping[str, bytes]
    duration: float
    failure: Failure | None


def execute(
    script: Script,
    machine: Machine,
    interrupt: threading.Event,
    server: ForkServer | None = None,
) -> Execution:
    """Run ``script`` on ``machine``; set ``interrupt`` from another thread to kill it.

    Without a ``server`` that others share it gets its own.
    """
    if server is None:
        with ForkServer(script.project, machine.kind) as server:
            return execute(script, machine, interrupt, server)
    with tempfile.TemporaryDirectory(prefix="captures-", ignore_cleanup_errors=True) as scratch:
        return _Run(script, machine, interrupt, server, Path(scratch)).finish()


class _Stop(Exception):  # noqa: N818 - it ends a run, for the reason given
    pass


@dataclass
class _Run:
    script: Script
    machine: Machine
    interrupt: threading.Event
    server: ForkServer
    scratch: Path

    started: float = field(default_factory=time.monotonic)
    cell: Cell | None = None  # the one that runs
    complained: Cell | None = None  # the first that wrote to stderr
    done: bool = False
    outputs: list[Output] = field(default_factory=list)
    figures: dict[str, bytes] = field(default_factory=dict)
    failure: Failure | None = None
    printed: bytearray = field(default_factory=bytearray)  # by the running cell
    last: bytes = b""  # the end of everything printed
    errors: bytearray = field(default_factory=bytearray)
    stacks: bytearray = field(default_factory=bytearray)
    events: bytearray = field(default_factory=bytearray)
    total: int = 0

    def finish(self) -> Execution:
        self._start()
        try:
            self._watch()
        except _Stop as reason:
            self._ask_for_stack()
            self._fail(str(reason))
        finally:
            self.child.kill()
            for pipe in (*self.pipes, self.answers):
                os.close(pipe)
        duration = time.monotonic() - self.started
        return Execution(tuple(self.outputs), self.figures, duration, self.failure)

    def _start(self) -> None:
        readers, writers = zip(*(os.pipe() for _ in range(4)), strict=True)
        answer_reader, self.answers = os.pipe()
        self.child = self.server.fork(self._job(), *writers, answer_reader)
        for pipe in (*writers, answer_reader):
            os.close(pipe)
        for pipe in readers:
            os.set_blocking(pipe, False)
        self.pipes = readers
        sinks = (self._print, self.errors.extend, self.events.extend, self.stacks.extend)
        self.sinks = dict(zip(readers, sinks, strict=True))

    def _job(self) -> Path:
        figures = self.scratch / "figures"
        figures.mkdir()
        # A directory of its own, so that whatever an example writes stays out of the project.
        cwd = self.scratch / "cwd"
        cwd.mkdir()
        cells = [
            {"name": cell.name, "first_line": cell.first_line, "source": cell.source}
            for cell in self.script.cells
        ]
        job = self.scratch / "job.json"
        content = {
            "script": str(self.script.path),
            "text": self.script.text,
            "cells": cells,
            "figures": str(figures),
            "cwd": str(cwd),
        }
        job.write_text(json.dumps(content), encoding="utf-8")
        return job

    def _watch(self) -> None:
        with selectors.DefaultSelector() as selector:
            for pipe in self.pipes:
                selector.register(pipe, selectors.EVENT_READ)
            while self.child.poll() is None:
                for key, _ in selector.select(timeout=0.05):
                    if not self._drain(key.fd):
                        selector.unregister(key.fd)
                self._answer()
                self._require_time()
        self._drain_all()
        self._answer()
        self._judge_end()

    def _drain(self, pipe: int) -> bool:
        """Read what is there; False at the end of the file."""
        while True:
            try:
                content = os.read(pipe, 65536)
            except BlockingIOError:
                return True
            if not content:
                return False
            self.total += len(content)
            self.sinks[pipe](content)
            if self.total > PRINT_LIMIT:
                raise _Stop(f"printed more than {PRINT_LIMIT / 1e6:g} MB")

    def _drain_all(self) -> None:
        for pipe in self.pipes:
            self._drain(pipe)

    def _print(self, content: bytes) -> None:
        self.printed += content
        self.last = (self.last + content)[-4096:]

    def _answer(self) -> None:
        while b"\n" in self.events:
            line, _, rest = self.events.partition(b"\n")
            self.events[:] = rest
            self._drain_all()
            self._take(bytes(line))
            # The child may be dead by now; its end is judged elsewhere.
            try:
                os.write(self.answers, b".")
            except BrokenPipeError:
                return

    def _take(self, line: bytes) -> None:
        try:
            event = json.loads(line)
        except ValueError:
            event = None
        running = self.cell.name if self.cell else ""
        following = next((c.name for c in self.script.cells[len(self.outputs) :]), "")
        match event:
            case {"event": "begin", "cell": cell} if cell and cell == following:
                self.cell = self.script.cell(cell)
            case {"event": "end", "figures": names} if running and running == following:
                self._record(names)
            case {"event": "raised", "error": error, "line": number, "stack": stack}:
                self._fail(error, line=number, stack=stack)
            case {"event": "done"} if not following:
                self.done = True
            case _:
                raise _Stop("forked a copy that ran on, or wrote to descriptors it had not opened")

    def _record(self, names: list[str]) -> None:
        assert self.cell is not None
        if self.complained is None and self._unexpected_errors():
            self.complained = self.cell
        example = self.script.path.stem
        figures = []
        for name in names:
            final = f"{example}.{self.machine.kind}.{name}"
            self.figures[final] = themed((self.scratch / "figures" / name).read_bytes())
            figures.append(final)
        text = normalise(legible(bytes(self.printed)))
        self.outputs.append(Output(self.cell.name, self.cell.measured, text, tuple(figures)))
        self.printed.clear()

    def _require_time(self) -> None:
        if self.interrupt.is_set():
            raise _Stop("was interrupted")
        if time.monotonic() - self.started > self.script.time_limit:
            raise _Stop(f"was still running after its time limit of {self.script.time_limit:g} s")

    def _ask_for_stack(self) -> None:
        """Learn where a running example stands, before it is killed."""
        if self.child.poll() is None:
            self.child.signal(signal.SIGUSR1)
            time.sleep(0.2)
        with contextlib.suppress(BlockingIOError):
            self.stacks += os.read(self.pipes[3], 65536)

    def _judge_end(self) -> None:
        if self.failure:
            return
        status = self.child.returncode
        assert status is not None
        if status == LOST:
            raise _Stop("was lost: the process that it was forked from ended; run it again")
        if status < 0:
            name = _SIGNALS.get(-status, "unknown")
            raise _Stop(f"was killed by signal {-status} ({name})")
        if not self.done:
            raise _Stop(f"ended with exit status {status} before its last cell")
        if status:
            raise _Stop(f"ended with exit status {status} after its last cell")
        if self.printed.strip():
            raise _Stop("printed after its last cell had ended")
        if self._unexpected_errors():
            self.cell = self.complained
            raise _Stop("wrote to stderr, which no page would show")

    def _unexpected_errors(self) -> str:
        lines = legible(bytes(self.errors)).split("\n")
        kept = [line for line in lines if not any(p.search(line) for p in _TOLERATED.values())]
        return "\n".join(kept).strip("\n")

    def _fail(self, message: str, line: int | None = None, stack: str = "") -> None:
        if self.failure:
            return
        cell = self.cell or self.script.cells[0]
        message, stack = (
            legible(text.encode(errors="backslashreplace")) for text in (message, stack)
        )
        said = _last_lines(legible(self.last))
        complaint = _last_lines(self._unexpected_errors())
        last = "\n".join(filter(None, [said, stack.rstrip(), complaint]))
        self.failure = Failure(cell.name, line or self._line_of_stack() or cell.line, message, last)

    def _line_of_stack(self) -> int | None:
        """Where the example stood when it crashed or hung, or which line it was warned of."""
        path = re.escape(str(self.script.path))
        text = (self.stacks + self.errors).decode(errors="replace")
        found = re.search(rf'File "{path}", line (\d+)|{path}:(\d+):', text)
        return int(found[1] or found[2]) if found else None


def legible(printed: bytes) -> str:
    """Text as a transcript holds it: control characters visible, line ends and margins even."""
    text = printed.decode("utf-8", errors="backslashreplace")
    text = text.replace("\r\n", "\n").replace("\r", "\n").expandtabs()
    text = "".join(c if c == "\n" or c.isprintable() else ascii(c)[1:-1] for c in text)
    return "\n".join(line.rstrip() for line in text.split("\n")).strip("\n")


def _last_lines(text: str) -> str:
    lines = text.split("\n")
    return "\n".join(line[:200] for line in lines[-_LAST_LINES:])
