"""How much work a run of an op is: calls and elements, never seconds.

In Triton's interpreter an op costs what its calls of Python functions cost, about half a second for
a million; in torch itself, what its operations cost: each counts as five calls, and as one more for
a thousand elements. What a probe can afford to try is decided by their number, which is the same on
every machine: were it decided by a clock, a report would say one thing on a fast machine and
another on a slow one.
"""

from __future__ import annotations

import cProfile
import inspect
import math
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradproof.sizing import MOST_ELEMENTS, elements_of
from gradproof.subject import Subject

T = TypeVar("T")

MOST_CALLS = 540_000  # in one run, or
CALLS_AN_OPERATION = 5
ELEMENTS_A_CALL = 1000
MOST_TIMES = 2.0  # as often what the run on the inputs given takes


@dataclass(frozen=True)
class Climb:
    """Ever larger runs of one op, each allowed by what the two before it took.

    calls, elements: of the last run measured. slope: calls for each further element.
    limit: calls; None on a GPU, which needs none.
    """

    calls: float
    elements: int
    slope: float
    limit: float | None

    @classmethod
    def of(cls, subject: Subject, run: Callable[[Subject], object]) -> Climb:
        """From the foot: the run on the inputs of `subject`."""
        elements = max(elements_of(subject, {}), 1)
        if subject.cuda:
            return cls(0, elements, 0, None)
        calls, _ = counted(lambda: run(subject.at(subject.inputs)))
        return cls(calls, elements, calls / elements, max(MOST_CALLS, MOST_TIMES * calls))

    def allows(self, elements: int) -> bool:
        """Whether a run on so many elements is affordable, going straight on from the last two."""
        if elements > MOST_ELEMENTS or self.limit is None:
            return elements <= MOST_ELEMENTS
        return self.calls + self.slope * (elements - self.elements) <= self.limit

    def may_allow(self, elements: int) -> bool:
        """Whether a run on so many would be affordable even if the way there were half as steep."""
        return replace(self, slope=self.slope / 2).allows(elements)

    @property
    def uncounted(self) -> Climb:
        """For runs that nobody counts, which takes as long again."""
        return self if self.limit is None else replace(self, limit=2 * self.limit)

    def after(self, elements: int, run: Callable[[], T]) -> tuple[Climb, T]:
        """Make a run; the next one is measured by it."""
        if self.limit is None or elements == self.elements:
            return self, run()
        calls, result = counted(run)
        slope = max((calls - self.calls) / (elements - self.elements), 0.0)
        return replace(self, calls=calls, elements=elements, slope=slope), result


def counted(run: Callable[[], T]) -> tuple[float, T]:
    """How many Python functions `run` calls, infinitely many if another profiler is at work.

    Operations of torch count with their elements instead of the Python functions on the way.
    """
    operations = Operations()
    profiler = cProfile.Profile(subcalls=False, builtins=False)
    try:
        if sys.getprofile() is not None:
            raise ValueError
        profiler.enable()
    except ValueError:  # from Python 3.12 on, enable itself says that another one is active
        return math.inf, run()
    try:
        with operations:
            result = run()
    finally:
        profiler.disable()
    calls = sum(e.callcount for e in profiler.getstats() if not _no_work(e.code))
    return calls + operations.calls, result


class Operations(TorchDispatchMode):
    """Counts operations of torch, each by the largest tensor it reads or makes; views are free."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not getattr(func, "is_view", False):
            made = result if isinstance(result, tuple | list) else (result,)
            sizes = [t.numel() for t in (*args, *made) if isinstance(t, Tensor)]
            self.calls += CALLS_AN_OPERATION + max(sizes, default=0) // ELEMENTS_A_CALL
        return result

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # see gradproof.allocation.Poisoned


def _no_work(code: CodeType | str) -> bool:
    """Calls whose number says more of where an op stands than of what it does.

    Comprehensions are calls up to Python 3.11 and none from 3.12 on. And Triton's interpreter looks
    at every global of a kernel's module for each function it calls: in a file with much else in it
    the same kernel would seem to work harder.
    """
    return isinstance(code, CodeType) and (
        code.co_name in ("<listcomp>", "<setcomp>", "<dictcomp>", "__torch_dispatch__")
        or code is inspect.ismodule.__code__
        or code.co_filename.startswith(_TORCH)
    )


_TORCH = f"{Path(torch.__file__).parent}{os.sep}"
