"""Put an op through every probe."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradproof.case import Case
from gradproof.fit import check_alone, check_beside
from gradproof.passes import (
    LostDeviceError,
    NoGraphError,
    NoOutputError,
    NoTruthError,
    OpError,
    lost_device,
)
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.probes import PROBES
from gradproof.report import Finding, ProbeResult, Report
from gradproof.subject import Subject
from gradproof.tensors import listed
from gradproof.traps import TRAPS

UNDEFINED = {
    "reads-past-end",
    "uninitialised-memory",
    "unwritten-gradient",
    "unzeroed-accumulator",
    "writes-past-end",
}


def prove(
    op: Callable[..., Any],
    inputs: tuple[Any, ...],
    reference: Callable[..., Any] | None = None,
    probes: Iterable[str] | None = None,
) -> Report:
    """Run every probe on `op` and say what holds and which traps it fell into.

    Nothing is left behind: inputs, `.grad`, a module's buffers, generators, the random state and
    global settings are as before.

    Args:
        op: any differentiable callable: `Function.apply`, an `nn.Module`, a custom op, a function.
        inputs: the positional arguments of one call, on a CPU or a CUDA device. Gradients are asked
            for the floating tensors that require them, or for all floating tensors if none does.
        reference: takes the same arguments and computes the same in plain torch; evaluated in
            float64. Without it the gradient is held against finite differences of the op's own
            forward.
        probes: names from `gradproof.probes.PROBES`; by default all but those on request
            (`compile`).

    Raises:
        TypeError: an argument is of a kind that cannot be used.
        ValueError: an argument's value cannot be used, or the reference does not fit the op.
    """
    chosen = choose(probes)
    began = time.monotonic()
    with torch.inference_mode(False):
        try:
            subject = Subject.of(Case(op, inputs, reference))
            prover = Prover(subject, [probe.name for probe in chosen])
        except (TypeError, ValueError) as error:
            raise error.with_traceback(None) from None  # the line at fault is the caller's
        results = []
        for probe in chosen:
            with progress(probe, subject.title):
                results.append(prover.run(probe))
    return Report(subject.description, tuple(results), time.monotonic() - began)


def choose(names: Iterable[str] | None) -> list[Probe]:
    """The probes of these names, in their own order; the default set for None."""
    if names is None:
        return [probe for probe in PROBES.values() if not probe.on_request]
    wanted = [names] if isinstance(names, str) else list(names)
    if not wanted:
        raise ValueError(f"probes: none named; there are {', '.join(PROBES)}")
    if unknown := [name for name in wanted if name not in PROBES]:
        raise ValueError(f"probes: no probe named {unknown[0]!r}; there are {', '.join(PROBES)}")
    return [probe for name, probe in PROBES.items() if name in wanted]


class Prover:
    """Runs probes on one subject, and remembers what makes the later ones meaningless.

    planned: names of the probes to come; where none of them says what the obstacle means, the first
    to meet it does. Raises TypeError or ValueError for a reference that does not fit the op.
    """

    def __init__(self, subject: Subject, planned: Collection[str] = ()):
        self.subject = subject
        self._steady = True  # as far as a probe that repeats calls has said
        with quiet(), subject.state.kept():
            check_alone(subject)
            self._obstacle = _obstacle(subject)
            if self._obstacle is None:
                check_beside(subject)
            elif set(planned) & set(self._obstacle.spared):
                self._obstacle = replace(self._obstacle, finding=None)

    @property
    def lost(self) -> bool:
        """Whether this process can run nothing more on its device."""
        return self._obstacle is not None and self._obstacle.reason == LOST.reason

    def run(self, probe: Probe) -> ProbeResult:
        obstacle = self._obstacle
        spared = obstacle is not None and probe.name in obstacle.spared
        if obstacle is not None and not spared and (finding := obstacle.finding) is not None:
            self._obstacle = replace(obstacle, finding=None)
            return _result(probe.name, [finding])
        if obstacle is not None and not spared:
            return ProbeResult(probe.name, skipped=obstacle.reason)
        with quiet(), self.subject.state.kept():
            result = _result(probe.name, self._remarks(probe, self.subject))
            if probe.repeats:
                self._steady &= not result.findings
            else:
                result = self._asked_again(probe, result)
        self._obstacle = self._obstacle or _undefined(result)
        return result

    def _asked_again(self, probe: Probe, result: ProbeResult) -> ProbeResult:
        """What two runs of an op differ in is found again, unless they differ by a race.

        Asked where there are races: on a GPU, and of an op that gave the same bits so far.
        """
        first = _comparisons(result)
        if not (first and self.subject.cuda and self._steady):
            return result
        again = self._remarks(probe, self.subject.at(self.subject.inputs))
        second = _comparisons(_result(probe.name, again))
        if first == second:
            return result
        once = [
            listed(sorted({trap for trap, _ in found}) or ["nothing"]) for found in (first, second)
        ]
        said = f"asked twice, the probe {probe.name} finds {once[0]}, then {once[1]}"
        race = Finding("not-deterministic", said, probe=probe.name, gross=True)
        return replace(result, findings=(*result.findings, race))

    def _remarks(self, probe: Probe, subject: Subject) -> list[Remark]:
        remarks: list[Remark] = []
        try:
            for remark in probe.run(subject):
                remarks.append(remark)
        except LostDeviceError as lost:
            remarks.append(Finding("illegal-address", str(lost)))
        except NoTruthError as raised:
            remarks.append(Note(f"the reference raises {raised}"))
        except OpError as raised:
            if not remarks:
                remarks.append(Finding(f"{raised.stage}-raises", str(raised)))
        except NoOutputError as error:
            remarks.append(Finding("forward-raises", str(error)))
        except NoGraphError:
            if not remarks:
                remarks.append(Finding("no-grad-fn", "the output has no grad_fn"))
        except RuntimeError as error:
            if not lost_device(error):
                raise
            remarks.append(Finding("illegal-address", str(error).splitlines()[0]))
        return remarks


def _result(name: str, remarks: list[Remark]) -> ProbeResult:
    findings = tuple(replace(r, probe=name) for r in remarks if isinstance(r, Finding))
    tried = "; ".join(r.what for r in remarks if isinstance(r, Tried))
    notes = tuple(r.text for r in remarks if isinstance(r, Note))
    skipped = "" if findings or tried else "nothing can be said"
    return ProbeResult(name, findings, tried, notes, skipped)


def _comparisons(result: ProbeResult) -> set[tuple[str, str]]:
    """What was found by holding runs against each other, or against the truth."""
    return {(f.trap, f.about) for f in result.findings if not TRAPS[f.trap].seen_in_one_run}


@dataclass(frozen=True)
class Obstacle:
    """Why most probes have nothing to judge; those in `spared` say what it means."""

    reason: str
    spared: tuple[str, ...] = ()
    finding: Finding | None = None  # said by the first probe that meets it


LOST = Obstacle("the CUDA context is lost; the gradproof command survives this")


def _obstacle(subject: Subject) -> Obstacle | None:
    """What keeps a single forward and backward from running at all."""
    try:
        subject.base  # noqa: B018 (computed here for everybody)
    except LostDeviceError as lost:
        return replace(LOST, finding=Finding("illegal-address", str(lost)))
    except OpError as raised:
        finding = Finding(f"{raised.stage}-raises", raised.located)
        return Obstacle(f"the {raised.stage} raises", ("contract",), finding)
    except NoGraphError:
        names = listed([subject.names[i] for i in subject.wrt])
        finding = Finding("no-grad-fn", f"{names} require a gradient and the output does not")
        return Obstacle("the output has no grad_fn", ("graph",), finding)
    return None


def _undefined(result: ProbeResult) -> Obstacle | None:
    """After these findings no other number means anything."""
    found = {finding.trap for finding in result.findings}
    if "illegal-address" in found:
        return LOST
    # Which may look like anything else, memory that nobody wrote included.
    if any(f.trap == "not-deterministic" and f.gross for f in result.findings):
        return Obstacle("the same call gives different results")
    if found & UNDEFINED:
        return Obstacle("results depend on memory nobody wrote")
    if found & {"accumulates-across-calls", "first-call-differs"}:
        return Obstacle("results depend on earlier calls")
    return None


@contextmanager
def quiet() -> Iterator[None]:
    """No warnings from provoked overflow and the like; the random state is put back."""
    devices = list(range(torch.cuda.device_count())) if torch.cuda.is_initialized() else []
    with warnings.catch_warnings(), torch.random.fork_rng(devices=devices), torch.enable_grad():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def progress(probe: Probe, title: str) -> Iterator[None]:
    """The probe at work, on stderr if a person is watching; it makes way for what the op prints."""
    if not sys.stderr.isatty():
        yield
        return
    screen = sys.stderr
    print(f"{CLEAR}gradproof {title}: {probe.name} …", end="", file=screen, flush=True)
    try:
        with (
            contextlib.redirect_stdout(Clearing(sys.stdout, screen)),
            contextlib.redirect_stderr(Clearing(sys.stderr, screen)),
        ):
            yield
    finally:
        print(CLEAR, end="", file=screen, flush=True)


CLEAR = "\r\033[K"  # the line on which the cursor stands


class Clearing:
    """A stream on which writing begins where the progress line was."""

    def __init__(self, stream: Any, screen: Any):
        self._stream = stream
        self._screen = screen
        self._clean = False

    def write(self, text: str) -> Any:
        if not self._clean:
            print(CLEAR, end="", file=self._screen, flush=True)
            self._clean = True
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
