"""The shape of a probe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from gradproof.report import Finding
from gradproof.subject import Subject


@dataclass(frozen=True)
class Tried:
    """A check that was made, in a few words; the report lists them where nothing failed."""

    what: str


@dataclass(frozen=True)
class Note:
    """Something worth saying that is no failure."""

    text: str


Remark = Finding | Tried | Note


@dataclass(frozen=True)
class Probe:
    """name: as listed and switched on or off. question: what it asks, in one sentence.

    run: yields what it finds. repeats: it holds equal calls against each other, so what it finds
    needs no second asking. on_request: left out unless asked for by name.
    """

    name: str
    question: str
    run: Callable[[Subject], Iterator[Remark]]
    repeats: bool = False
    on_request: bool = False
