"""Probes in a child process, so that a crash or a hang is reported and not suffered."""

from __future__ import annotations

import json
import signal
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from gradproof.load import UnusableError
from gradproof.process import DiedError, Printed, Process, TooLongError
from gradproof.report import Finding, ProbeResult

PROBE_PATIENCE = 300.0  # seconds for the op's first call, and for one probe; compilation included
START_PATIENCE = 300.0  # seconds to import torch and the op, and to make the inputs


class ProbeBrokeError(RuntimeError):
    """A probe failed for a reason of its own: a mistake of gradproof, no finding about the op."""


class Worker:
    """A child process that runs one probe after another on one case, and is replaced if it dies.

    planned: names of the probes to come, as `gradproof.prove.Prover` has it.
    printed: what the op printed, which is kept apart from the report.
    """

    def __init__(
        self,
        op: str,
        inputs: str | None = None,
        reference: str | None = None,
        patience: float = PROBE_PATIENCE,
        planned: Collection[str] = (),
    ):
        if not patience > 0:
            raise ValueError(f"patience: expected seconds, more than 0, got {patience:g}")
        self._case = (op, inputs, reference)
        self._planned = list(planned)
        self._patience = patience
        self._process: Process | None = None
        self._refusal: Exception | None = None
        self._deaths = 0  # in the op's first call
        self._hopeless = ""
        self.description = op
        self.printed = Printed()

    def run(self, probe: str) -> ProbeResult:
        """The probe's result; a death or a hang of the child becomes a finding.

        Raises UnusableError if there is nothing to prove, ProbeBrokeError if gradproof is wrong.
        """
        if self._refusal is not None:
            raise self._refusal
        if self._hopeless:
            return ProbeResult(probe, skipped=self._hopeless)
        if self._process is None:
            self._load()
            if (ended := self._first_call()) is not None:
                return ended.result(probe)
        assert self._process is not None
        self._process.send(probe)
        message = self._receive("during the probe")
        if isinstance(message, Ended):
            return message.result(probe)
        if "broke" in message:
            raise ProbeBrokeError(_apology(message["broke"]))
        if message["lost"]:
            self.close()  # a CUDA context that met a memory fault serves nobody
        return _decoded(message["result"])

    def close(self) -> None:
        if self._process is not None:
            self._process.close()
            self._process = None

    def __enter__(self) -> Worker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _load(self) -> None:
        self._process = Process(
            "gradproof.child",
            json.dumps(self._case),
            json.dumps(self._planned),
            printed=self.printed,
        )
        try:
            self._usable(self._process.receive(START_PATIENCE))
        except (DiedError, TooLongError) as error:
            self.close()
            self._refuse(UnusableError(f"{self._case[0]!r}: {error} while it was loaded"))

    def _first_call(self) -> Ended | None:
        """What came of it, where no probe can follow; the same twice leaves no hope for others."""
        message = self._receive("in the op's first call")
        if isinstance(message, Ended):
            self._deaths += 1
            if message.trap == "hang":
                self._hopeless = "the op's first call does not come back"
            elif self._deaths > 1:
                self._hopeless = "the op's first call ends its process"
            return message
        self._usable(message)
        self.description = message["description"]
        self._deaths += message["lost"]
        if self._deaths > 1:
            self._hopeless = "the op's first call ends in a memory fault"
        return None

    def _usable(self, message: dict[str, Any]) -> None:
        if "unusable" in message:
            self._refuse(UnusableError(message["unusable"]))
        if "broke" in message:
            self._refuse(ProbeBrokeError(_apology(message["broke"])))

    def _refuse(self, error: Exception) -> None:
        self.close()
        self._refusal = error
        raise error

    def _receive(self, when: str) -> dict[str, Any] | Ended:
        assert self._process is not None
        try:
            return self._process.receive(self._patience)
        except (DiedError, TooLongError) as error:
            self.close()
            return Ended(error, when)


@dataclass(frozen=True)
class Ended:
    """How a child came to its end, and when."""

    error: DiedError | TooLongError
    when: str

    @property
    def trap(self) -> str:
        if isinstance(self.error, TooLongError):
            return "hang"
        fault = -self.error.code in (signal.SIGSEGV, signal.SIGBUS)
        return "illegal-address" if fault else "crash"

    def result(self, probe: str) -> ProbeResult:
        """A finding, unless it was the reference that was being called."""
        called, given = self.error.calling or ("", "")
        said = f"{self.error} {self.when}"
        said += f", when the {called} was called with {given}" if called else ""
        said += f", at {self.error.place}" if self.error.place else ""
        if called == "reference":
            return ProbeResult(probe, skipped=said)
        if isinstance(self.error, DiedError) and self.error.code >= 0:
            said = f"the op called exit: {said}"
        return ProbeResult(probe, (Finding(self.trap, said, probe=probe),))


def _apology(error: str) -> str:
    return f"a mistake of gradproof, not of the op: {error}"


def _decoded(fields: dict[str, Any]) -> ProbeResult:
    findings = tuple(Finding(**finding) for finding in fields["findings"])
    return ProbeResult(**{**fields, "findings": findings, "notes": tuple(fields["notes"])})
