"""Does the same call give the same bits, from the first one on?"""

from __future__ import annotations

from collections.abc import Iterator

from gradproof.passes import NoGraphError, OpError
from gradproof.probe import Probe, Remark, Tried
from gradproof.repeat import GROSS, GROSS_IF_LONG, repeated, runs
from gradproof.report import Finding
from gradproof.sizing import grown, unseen
from gradproof.subject import Subject


def determinism(subject: Subject) -> Iterator[Remark]:
    found: list[Finding] = []
    for situation, variant in (*unseen(subject), ("", subject)):
        found = found or _found(variant, situation)
    # A race needs programs that overlap: where they are few it may never bite, or bite once and
    # look like something else. (The interpreter runs one after another.)
    sure = any(finding.gross for finding in found)
    for situation, variant in grown(subject) if subject.cuda and not sure else ():
        races = [f for f in _found(variant, situation, GROSS_IF_LONG) if f.gross]
        if races:
            yield from races
            return
    yield from found
    if not found:
        yield Tried(f"{runs(subject)} runs, bit for bit")


def _found(subject: Subject, situation: str, gross: float = GROSS) -> list[Finding]:
    try:
        return list(repeated(subject, situation, gross))
    except (OpError, NoGraphError):
        return []


DETERMINISM = Probe(
    "determinism", "Does the same call give the same bits?", determinism, repeats=True
)
