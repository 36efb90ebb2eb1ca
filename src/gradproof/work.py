"""How much work a run of an op is: calls of Python functions, never seconds.

In Triton's interpreter an op costs what its calls cost, about half a second for a million. What a
probe can afford to try is decided by their number, which is the same on every machine: were it
decided by a clock, a report would say one thing on a fast machine and another on a slow one.
"""

from __future__ import annotations

import cProfile
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeVar

from gradproof.sizing import elements_of
from gradproof.subject import Subject

T = TypeVar("T")

MOST_CALLS = 150_000  # in one run, or
MOST_TIMES = 3.0  # as often what the run on the inputs given takes


@dataclass(frozen=True)
class Climb:
    """Ever larger runs of one op, each allowed by what the one before it took.

    calls, elements: of the last run measured. limit: calls; None on a GPU, which needs none.
    """

    calls: float
    elements: int
    limit: float | None

    @classmethod
    def of(cls, subject: Subject) -> Climb:
        """From the foot: the run on the inputs of `subject`."""
        elements = elements_of(subject, {})
        if subject.cuda:
            return cls(0, elements, None)
        calls, _ = counted(lambda: subject.run(subject.dy))
        return cls(calls, elements, max(MOST_CALLS, MOST_TIMES * calls))

    def allows(self, elements: int) -> bool:
        """Whether a run on so many elements is affordable if calls grow as elements do."""
        if self.limit is None:
            return True
        return self.calls * elements <= self.limit * max(self.elements, 1)

    def after(self, elements: int, run: Callable[[], T]) -> tuple[Climb, T]:
        """Make a run; the next one is measured by it."""
        if self.limit is None:
            return self, run()
        calls, result = counted(run)
        return replace(self, calls=calls, elements=elements), result


def counted(run: Callable[[], T]) -> tuple[float, T]:
    """How many Python functions `run` calls, infinitely many if another profiler is at work."""
    profiler = cProfile.Profile(subcalls=False, builtins=False)
    try:
        if sys.getprofile() is not None:
            raise ValueError
        profiler.enable()
    except ValueError:  # from Python 3.12 on, enable itself says that another one is active
        return math.inf, run()
    try:
        result = run()
    finally:
        profiler.disable()
    return sum(entry.callcount for entry in profiler.getstats()), result
