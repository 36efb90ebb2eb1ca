"""A child process that takes and gives lines, is watched, and never outlives its parent."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from typing import Any

from gradproof.frames import line_of_dump

TICK = 0.1  # seconds between looks at whether the process still lives
DUMP_PATIENCE = 1.0  # seconds for a process that hangs to say where
LONGEST_LINE = 200  # characters of a printed line that are kept
MOST_LINES = 20  # different printed lines that are kept


class UnansweredError(Exception):
    """No answer came.

    place: the line where the process stands, or fell. calling: what was called there, and how.
    """

    def __init__(self, message: str, place: str, calling: tuple[str, str] | None):
        super().__init__(message)
        self.place = place
        self.calling = calling


class DiedError(UnansweredError):
    """The process ended; `code` is negative for a signal."""

    def __init__(self, code: int, place: str = "", calling: tuple[str, str] | None = None):
        super().__init__("", place, calling)
        self.code = code

    def __str__(self) -> str:
        if self.code >= 0:
            return f"the process exited with status {self.code}"
        name = signal.Signals(-self.code).name
        hint = " (as when memory runs out)" if -self.code == signal.SIGKILL else ""
        return f"the process died of {name}{hint}"


class TooLongError(UnansweredError):
    """The process gave no answer in time."""

    def __init__(self, patience: float, place: str = "", calling: tuple[str, str] | None = None):
        super().__init__(f"no answer within {patience:g} s", place, calling)


class Printed:
    """What a process prints, each different line once with its count, within bounds."""

    def __init__(self) -> None:
        self._lines: Counter[str] = Counter()
        self._more = 0
        self._rest = b""

    def feed(self, chunk: bytes) -> None:
        *lines, rest = (self._rest + chunk).split(b"\n")
        self._rest = rest[: 4 * LONGEST_LINE]
        for line in lines:
            self._add(line)

    def take(self) -> str:
        """The lines since the last call."""
        self._add(self._rest)
        said = [f"  {text}{f'  ({n} times)' * (n > 1)}" for text, n in self._lines.items()]
        said += [f"  … and {self._more} more lines"] * (self._more > 0)
        self._lines.clear()
        self._more, self._rest = 0, b""
        return "\n".join(said)

    def _add(self, line: bytes) -> None:
        text = line.decode(errors="replace").rstrip()[:LONGEST_LINE]
        if text in self._lines or (text and len(self._lines) < MOST_LINES):
            self._lines[text] += 1
        elif text:
            self._more += 1


class Process:
    """A Python module at work in a process, and a session, of its own.

    The module is given a socket for lines and a pipe that closes when this process ends
    (`gradproof.child` says what it does with them), then `arguments`.
    """

    def __init__(self, module: str, *arguments: str, printed: Printed):
        self._printed = printed
        self._buffer = b""
        self._dump = ""
        self._calling: tuple[str, str] | None = None
        self._socket, theirs = socket.socketpair()
        ends, self._lifeline = os.pipe()
        given = (theirs.fileno(), ends)
        command = [sys.executable, "-u", "-m", module, *map(str, given), *arguments]
        # The same import path: a test runner may have added to it. A session of its own: an
        # interrupt from the terminal is the parent's to answer.
        self._popen = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=given,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )
        theirs.close()
        os.close(ends)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._socket, selectors.EVENT_READ, self._hear)
        self._selector.register(self._popen.stdout, selectors.EVENT_READ, printed.feed)  # type: ignore[arg-type]

    def send(self, line: str) -> None:
        with contextlib.suppress(OSError):  # a death is noticed where an answer is awaited
            self._socket.sendall(line.encode() + b"\n")

    def receive(self, patience: float) -> dict[str, Any]:
        """The next message; raises DiedError or TooLongError."""
        deadline = time.monotonic() + patience
        while True:
            ended = self._popen.poll() is not None  # asked first: what it last said is read below
            self._read(0 if ended else min(TICK, max(deadline - time.monotonic(), 0)))
            if (message := self._message()) is not None:
                return message
            if ended:
                place = line_of_dump(self._dump)
                raise DiedError(self._popen.returncode, place, self._calling)
            if time.monotonic() >= deadline:
                raise TooLongError(patience, self._where_it_stands(), self._calling)

    def close(self) -> None:
        if self._selector.get_map() is None:
            return  # closed before
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)  # and whatever it started
        self._popen.wait()
        self._read(0)
        self._selector.close()
        self._socket.close()
        os.close(self._lifeline)
        assert self._popen.stdout is not None
        self._popen.stdout.close()

    def _read(self, patience: float) -> None:
        """All that is there to read, waiting `patience` for the first of it."""
        while ready := self._selector.select(patience):
            patience = 0
            for key, _ in ready:
                try:
                    chunk = os.read(key.fd, 65536)
                except ConnectionResetError:
                    chunk = b""
                if chunk:
                    key.data(chunk)
                else:
                    self._selector.unregister(key.fileobj)

    def _hear(self, chunk: bytes) -> None:
        self._buffer += chunk

    def _message(self) -> dict[str, Any] | None:
        """The next line of JSON; the lines between are a stack that faulthandler wrote."""
        while b"\n" in self._buffer:
            line, _, self._buffer = self._buffer.partition(b"\n")
            if line.startswith(b"{"):
                message: dict[str, Any] = json.loads(line)
                if "calling" not in message:
                    self._calling = None
                    return message
                of, given = message["calling"]
                self._calling = (of, given)
                continue
            self._dump += line.decode(errors="replace") + "\n"
        return None

    def _where_it_stands(self) -> str:
        self._popen.send_signal(signal.SIGUSR1)
        deadline = time.monotonic() + DUMP_PATIENCE
        while not (place := line_of_dump(self._dump)) and time.monotonic() < deadline:
            self._read(TICK)
            self._message()
        return place
