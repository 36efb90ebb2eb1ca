"""Probes in a child process, so that a crash or a hang is reported and not suffered."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from typing import Any

from gradproof.load import UnusableError
from gradproof.prove import choose, progress
from gradproof.report import Finding, ProbeResult, Report

PROBE_PATIENCE = 300.0  # seconds for one probe, compilation included
START_PATIENCE = 300.0  # seconds to import torch and the op, and to run it once


class Worker:
    """A child process that runs one probe after another on one case, and is replaced if it dies."""

    def __init__(
        self, op: str, inputs: str | None, reference: str | None, patience: float = PROBE_PATIENCE
    ):
        self._case = (op, inputs, reference)
        self._patience = patience
        self._child: subprocess.Popen[str] | None = None
        self.description = op

    def run(self, probe: str) -> ProbeResult:
        """The probe's result; a death or a hang of the child becomes a finding."""
        try:
            if self._child is None:
                self._start()
            assert self._child is not None and self._child.stdin is not None
            print(probe, file=self._child.stdin, flush=True)
            message = self._receive(self._patience)
        except (_DiedError, BrokenPipeError):
            code = self._obituary()
            fault = -code in (signal.SIGSEGV, signal.SIGBUS)
            how = f"died of {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
            return _failed(probe, "illegal-address" if fault else "crash", f"the process {how}")
        except _TooLongError as error:
            self.close()
            return _failed(probe, "hang", str(error))
        return _decoded(message["result"])

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._obituary()

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> None:
        reader, writer = os.pipe()
        command = [sys.executable, "-m", "gradproof.child", str(writer), json.dumps(self._case)]
        self._child = subprocess.Popen(
            command, stdin=subprocess.PIPE, pass_fds=(writer,), text=True
        )
        os.close(writer)
        self._channel = reader
        self._buffer = b""
        hello = self._receive(START_PATIENCE)
        if "unusable" in hello:
            self.close()
            raise UnusableError(hello["unusable"])
        self.description = hello["description"]

    def _receive(self, patience: float) -> dict[str, Any]:
        deadline = time.monotonic() + patience
        with selectors.DefaultSelector() as selector:
            selector.register(self._channel, selectors.EVENT_READ)
            while b"\n" not in self._buffer:
                if not selector.select(max(deadline - time.monotonic(), 0)):
                    raise _TooLongError(f"no answer within {patience:g} s")
                chunk = os.read(self._channel, 65536)
                if not chunk:
                    raise _DiedError
                self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def _obituary(self) -> int:
        """The exit status of the child; the next run starts another."""
        assert self._child is not None
        if self._child.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._child.stdin.close()
        code = self._child.wait()
        os.close(self._channel)
        self._child = None
        return code


class _DiedError(Exception):
    pass


class _TooLongError(Exception):
    pass


def prove_isolated(
    op: str,
    inputs: str | None = None,
    reference: str | None = None,
    probes: Iterable[str] | None = None,
    patience: float = PROBE_PATIENCE,
) -> Report:
    """As `prove`, with everything named as on the command line and run in a child process."""
    began = time.monotonic()
    with Worker(op, inputs, reference, patience) as worker:
        results = []
        for probe in choose(probes):
            with progress(probe, op):
                results.append(worker.run(probe.name))
        return Report(worker.description, tuple(results), time.monotonic() - began)


def _failed(probe: str, trap: str, evidence: str) -> ProbeResult:
    return ProbeResult(probe, (Finding(trap, f"{evidence} during the probe", probe=probe),))


def _decoded(fields: dict[str, Any]) -> ProbeResult:
    findings = tuple(Finding(**finding) for finding in fields.pop("findings"))
    return ProbeResult(findings=findings, notes=tuple(fields.pop("notes")), **fields)
