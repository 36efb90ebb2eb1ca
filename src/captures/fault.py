"""A fault: one thing that is wrong in the project, said in one line with its place."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Fault:
    """What is wrong at ``path:line``, what was expected there and what to do.

    ``path`` is relative to the project; ``line`` 0 means the file as a whole.
    """

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


class Faults(Exception):  # noqa: N818 - one exception that carries many
    """Every fault of one reading, in the order of files and lines."""

    def __init__(self, faults: Iterable[Fault]):
        self.faults = tuple(sorted(set(faults)))
        super().__init__(self.faults)

    def __str__(self) -> str:
        return "\n".join(map(str, self.faults))
