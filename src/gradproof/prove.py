"""Put an op through every probe."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from gradproof.case import Case
from gradproof.passes import NoGraph, Raised
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.probes import PROBES
from gradproof.report import Finding, ProbeResult, Report
from gradproof.subject import Subject

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

    op: any differentiable callable: `Function.apply`, an `nn.Module`, a custom op, a function.
    inputs: the positional arguments of one call, on a CPU or a CUDA device. Gradients are asked for
        the floating tensors that require them, or for all floating tensors if none does.
    reference: takes the same arguments and computes the same in plain torch; evaluated in float64.
        Without it the gradient is held against finite differences of the op's own forward.
    probes: names from `gradproof.probes.PROBES`; by default all but those on request (`compile`).

    Nothing is left behind: inputs, `.grad`, the random state and global settings are as before.

    Raises TypeError or ValueError for arguments it cannot use.
    """
    chosen = choose(probes)
    began = time.monotonic()
    subject = Subject.of(Case(op, tuple(inputs) if isinstance(inputs, list) else inputs, reference))
    results = tuple(run(subject, chosen))
    return Report(subject.description, results, time.monotonic() - began)


def run(subject: Subject, probes: Iterable[Probe]) -> Iterator[ProbeResult]:
    """Each probe's result as it is ready."""
    with quiet():
        obstacle = _obstacle(subject)
        for probe in probes:
            with progress(probe, subject):
                result = _run_one(probe, subject, obstacle)
            yield result
            obstacle = obstacle or _undefined(result)


def choose(names: Iterable[str] | None) -> list[Probe]:
    """The probes of these names, in their own order; the default set for None."""
    if names is None:
        return [probe for probe in PROBES.values() if not probe.on_request]
    wanted = [names] if isinstance(names, str) else list(names)
    if unknown := [name for name in wanted if name not in PROBES]:
        raise ValueError(f"probes: no probe named {unknown[0]!r}; there are {', '.join(PROBES)}")
    return [probe for name, probe in PROBES.items() if name in wanted]


def _run_one(probe: Probe, subject: Subject, obstacle: Obstacle | None) -> ProbeResult:
    if obstacle is not None and probe.name not in obstacle.spared:
        return ProbeResult(probe.name, skipped=obstacle.reason)
    remarks: list[Remark] = []
    try:
        for remark in probe.run(subject):
            remarks.append(remark)
    except Raised as raised:
        if not remarks:
            remarks.append(Finding(f"{raised.stage}-raises", str(raised)))
    except NoGraph:
        if not remarks:
            remarks.append(Finding("no-grad-fn", "the output has no grad_fn"))
    return _result(probe.name, remarks)


def _result(name: str, remarks: list[Remark]) -> ProbeResult:
    findings = tuple(replace(r, probe=name) for r in remarks if isinstance(r, Finding))
    tried = "; ".join(r.what for r in remarks if isinstance(r, Tried))
    notes = tuple(r.text for r in remarks if isinstance(r, Note))
    skipped = "" if findings or tried else "nothing can be said"
    return ProbeResult(name, findings, tried, notes, skipped)


@dataclass(frozen=True)
class Obstacle:
    """Why most probes have nothing to judge; those in `spared` say what it means."""

    reason: str
    spared: tuple[str, ...] = ()


def _obstacle(subject: Subject) -> Obstacle | None:
    """What keeps a single forward and backward from running at all."""
    try:
        subject.base  # noqa: B018 (computed here for everybody)
    except Raised as raised:
        return Obstacle(f"the {raised.stage} raises", ("contract",))
    except NoGraph:
        return Obstacle("the output has no grad_fn", ("graph",))
    return None


def _undefined(result: ProbeResult) -> Obstacle | None:
    """After these findings no other number means anything."""
    found = {finding.trap for finding in result.findings}
    if found & UNDEFINED:
        return Obstacle("results depend on memory nobody wrote")
    if "accumulates-across-calls" in found:
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
def progress(probe: Probe, subject: Subject) -> Iterator[None]:
    """The probe at work, on stderr if a person is watching."""
    watched = sys.stderr.isatty()
    if watched:
        print(f"\r\033[Kgradproof {subject.title}: {probe.name} …", end="", file=sys.stderr)
    try:
        yield
    finally:
        if watched:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
