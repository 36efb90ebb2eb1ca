"""Processes that are forked from one that has imported what examples import.

A fresh interpreter spends seconds on importing torch. A fork finds it imported, with all that
torch imports sooner or later, and finds everything else as a fresh interpreter would.
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from captures.figures import STYLE
from captures.machine import environment
from captures.project import Project

LOST = 256  # a return code that no process has: nobody is left who could know it


class ForkServer:
    """Forks processes in the environment of the project's examples on a machine of this kind.

    A context that leaves no process behind. It starts its own with the first example, and
    another where that one was killed.
    """

    def __init__(self, project: Project, kind: str):
        self.project, self.kind = project, kind
        self._process: subprocess.Popen | None = None
        self._control: socket.socket
        self._turn = threading.Lock()

    def __enter__(self) -> "ForkServer":
        self._scratch = tempfile.TemporaryDirectory(prefix="captures-", ignore_cleanup_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()
            self._control.close()
        self._scratch.cleanup()

    def fork(self, job: Path, *pipes: int) -> "Forked":
        """Have a new process do the ``job`` with these pipes: out, err, events, stacks, answers."""
        status, theirs = os.pipe()
        with self._turn, job.open() as file:
            if self._process is None or self._process.poll() is not None:
                self._start()
            socket.send_fds(self._control, [b"."], [file.fileno(), theirs, *pipes])
        os.close(theirs)
        return Forked(status)

    def _start(self) -> None:
        if self._process:
            self._control.close()
        scratch = Path(self._scratch.name)
        style = scratch / "matplotlibrc"
        style.write_text(STYLE, encoding="utf-8")
        self._control, theirs = socket.socketpair()
        with theirs, (scratch / "said").open("w+b") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "captures.fork_server", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                cwd=scratch,
                env=environment(self.project, self.kind)
                | {"MPLBACKEND": "Agg", "MATPLOTLIBRC": str(style)},
                pass_fds=(theirs.fileno(),),
                start_new_session=True,
            )


class Forked:
    """A process, as ``subprocess.Popen`` has it; ``pid`` is None until it has begun."""

    def __init__(self, status: int):
        self.pid: int | None = None
        self.returncode: int | None = None
        self._status = status
        os.set_blocking(status, False)

    def poll(self) -> int | None:
        """How it ended: an exit status, minus a signal, or LOST; None while it runs."""
        with contextlib.suppress(BlockingIOError):
            while self.returncode is None:
                self._hear(os.read(self._status, 64))
        return self.returncode

    def _hear(self, said: bytes) -> None:
        # First a line with the process, at the end one with its exit status too.
        for line in said.splitlines():
            self.pid, *ended = map(int, line.split())
            self.returncode = ended[0] if ended else None
        if not said:
            self.returncode = LOST

    def signal(self, number: int) -> None:
        """Send a signal to the process if it runs."""
        if self.poll() is None and self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Leave nothing of it behind, whatever processes it started."""
        self.poll()
        if self.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            os.set_blocking(self._status, True)
            self.poll()
        # One that has yet to begin ends when it finds nobody to tell so.
        os.close(self._status)
