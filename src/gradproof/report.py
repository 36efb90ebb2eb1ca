"""What `prove` found, and how it is said."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field

from gradproof.tensors import count, listed
from gradproof.traps import TRAPS

WIDTH = 100


@dataclass(frozen=True)
class Finding:
    """One trap, as one probe saw it.

    Attributes:
        trap: its name, a key of `gradproof.TRAPS`.
        evidence: what was measured, with numbers and places.
        beside: what holds next to it, which narrows the cause.
        about: the gradient or output concerned, for instance `dx`; empty if it is the op as a
            whole.
        probe: the probe that met it.
        gross: results differ so much between equal calls that no number of the op means anything.
    """

    trap: str
    evidence: str
    beside: str = ""
    about: str = ""
    probe: str = ""
    gross: bool = False

    def __str__(self) -> str:
        trap = TRAPS[self.trap]
        lines = [
            f"{self.trap}: {trap.title}",
            *_paragraph("", self.evidence),
            *_paragraph("beside it: ", self.beside),
            *_paragraph("usual mend: ", trap.mend),
            f"  see {trap.link}",
        ]
        return "\n".join(lines)


@dataclass(frozen=True)
class ProbeResult:
    """What one probe did: which checks held, which traps it met, and what it could not say.

    Attributes:
        probe: its name.
        findings: the traps it met.
        tried: the checks that held.
        notes: what is worth saying and no failure.
        skipped: why it had nothing to ask; empty if it ran.
    """

    probe: str
    findings: tuple[Finding, ...] = ()
    tried: str = ""
    notes: tuple[str, ...] = ()
    skipped: str = ""

    @property
    def mark(self) -> str:
        if self.findings:
            return "FAIL"
        return "skip" if self.skipped else "ok"

    def __str__(self) -> str:
        traps = listed(list(dict.fromkeys(f.trap for f in self.findings))) if self.findings else ""
        said = traps or self.skipped or self.tried
        head = f"  {self.mark:<4}  {self.probe:<12}  "
        return textwrap.fill(
            head + said, WIDTH, subsequent_indent=" " * len(head), break_on_hyphens=False
        )


@dataclass(frozen=True)
class Report:
    """Every probe's result for one op on one set of inputs; printed, it is the report.

    Attributes:
        op: the op with its inputs, as the first line names them.
        results: what each probe said, in the order in which they ran.
        seconds: how long the proof took.
        ok: whether every probe holds.
        notes: what is worth saying and no failure.
        summary: the report's first line.
    """

    op: str
    results: tuple[ProbeResult, ...]
    seconds: float = field(default=0.0, compare=False)

    @property
    def ok(self) -> bool:
        """Whether nothing was found, and something held."""
        return not self.findings and any(not r.skipped for r in self.results)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The most telling first; a bare `wrong-gradient` is left out where another explains it."""
        found = [f for result in self.results for f in result.findings]
        order = list(TRAPS)
        found.sort(key=lambda f: order.index(f.trap))
        return tuple(_without_consequences(found))

    @property
    def traps(self) -> tuple[str, ...]:
        """Names of the traps found, the most telling first."""
        return tuple(dict.fromkeys(f.trap for f in self.findings))

    @property
    def seen_by(self) -> tuple[str, ...]:
        """The probes that failed."""
        return tuple(r.probe for r in self.results if r.findings)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(f"{r.probe}: {note}" for r in self.results for note in r.notes)

    @property
    def summary(self) -> str:
        tried = [r for r in self.results if not r.skipped]
        if self.ok:
            hold = "1 probe holds" if len(tried) == 1 else f"all {len(tried)} probes hold"
            return f"gradproof: {self.op}: {hold}"
        if not self.findings:
            return f"gradproof: {self.op}: no probe holds, since none could run"
        skipped = len(self.results) - len(tried)
        return (
            f"gradproof: {self.op}: {count(len(self.traps), 'trap')}, "
            f"seen by {len(self.seen_by)} of {count(len(tried), 'probe')}"
            + (f" ({skipped} skipped)" if skipped else "")
        )

    @property
    def consequences(self) -> tuple[str, ...]:
        """Names of traps that a probe met and that another finding explains."""
        met = dict.fromkeys(f.trap for result in self.results for f in result.findings)
        return tuple(trap for trap in met if trap not in self.traps)

    def __str__(self) -> str:
        summary = textwrap.fill(self.summary, WIDTH, subsequent_indent="  ", break_on_hyphens=False)
        parts = [summary, "\n".join(map(str, self.results))]
        parts += [str(finding) for finding in self.findings]
        if self.consequences:
            parts.append(f"left out, since the above explains it: {listed(self.consequences)}")
        if self.notes:
            parts.append("\n".join(line for note in self.notes for line in _note(note)))
        return "\n\n".join(parts)

    def raise_if_failed(self) -> None:
        """Raise `AssertionError` with the whole report unless every probe holds."""
        if not self.ok:
            raise AssertionError(str(self))


# What may explain that values are wrong: nothing that a graph or a layout is found to lack.
_EXPLAIN_VALUES = {"poison", "determinism", "contract", "writes", "values", "sizes"}
_EXPLAIN_SOME = _EXPLAIN_VALUES | {"accumulation", "layouts", "precision"}


def _without_consequences(findings: list[Finding]) -> Iterable[Finding]:
    """Each trap once for each gradient; no bare symptom where its cause is named."""
    if any(f.gross for f in findings):  # what was found by comparing runs is one symptom more
        findings = [f for f in findings if f.gross or TRAPS[f.trap].seen_in_one_run]
    telling = [f for f in findings if not TRAPS[f.trap].generic]
    causes = {f.about for f in telling if f.probe in ("values", "precision")}
    brought = {name for f in findings for name in TRAPS[f.trap].brings}
    seen = set()
    for finding in findings:
        if finding.trap in brought or any(_explains(cause, finding) for cause in telling):
            continue
        if finding.trap == "size-limit" and finding.about in causes:
            continue  # a gradient that is wrong for a known cause may be right where that is idle
        if (key := (finding.trap, finding.about)) not in seen:
            seen.add(key)
            yield finding


def _explains(cause: Finding, finding: Finding) -> bool:
    """Whether a named cause makes a bare symptom of the same gradient no news."""
    if not TRAPS[finding.trap].generic or (cause.about and cause.about != finding.about):
        return False
    everywhere = finding.trap in ("wrong-gradient", "wrong-forward")
    return cause.probe in (_EXPLAIN_VALUES if everywhere else _EXPLAIN_SOME)


def _paragraph(label: str, text: str) -> list[str]:
    if not text:
        return []
    return textwrap.wrap(
        label + text,
        WIDTH,
        initial_indent="  ",
        subsequent_indent="    ",
        break_on_hyphens=False,
    )


def _note(text: str) -> list[str]:
    return textwrap.wrap(
        text, WIDTH, initial_indent="note  ", subsequent_indent="      ", break_on_hyphens=False
    )
