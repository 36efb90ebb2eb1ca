"""The lines of a Markdown page: which are prose and which are code, nested as Markdown nests."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from captures.fault import Fault


@dataclass(frozen=True)
class Line:
    number: int
    start: int
    text: str
    kind: str  # "prose" | "code" | "blank"


_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(?:.*\n)*?(?:---|\.\.\.)[ \t]*(?:\n|\Z)\n*")


def front_matter_lines(text: str) -> int:
    """How many lines a generator cuts off before Markdown sees the page."""
    front = _FRONT_MATTER.match(text)
    return front.group().count("\n") if front else 0


_FENCE = re.compile(r"^(?P<indent>[ ]*)(?P<quote>(?:>[ ]?)*[ ]*)(?P<fence>`{3,}|~{3,})[^`]*$")
_CONTAINER = re.compile(r"^ *(?:[-*+]|\d+\.|!!!|\?\?\?\+?|===[!+]*|:|\[\^[^\]]+\]:)(?: |$)")
# Text after a comment on its line is read like any other.
_COMMENT = re.compile(r"^ *<!--(?!.*-->[ ]*\S)")
TAB = 4


def scan(text: str, page: str, first_line: int = 1) -> tuple[list[Line], list[Fault]]:
    """Label each line as prose, code or blank, the way Python-Markdown would nest it."""
    scanner = _Scanner(list(_rows(text, first_line)), page)
    while len(scanner.lines) < len(scanner.rows):
        scanner.take_next()
    return scanner.lines, scanner.faults


@dataclass
class _Scanner:
    rows: list[tuple[int, int, str]]
    page: str
    lines: list[Line] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    # Where the content of each open list item, tab or admonition begins.
    bases: list[int] = field(default_factory=lambda: [0])

    def take_next(self) -> None:
        """Label the next row, or all rows of the block that it opens."""
        index = len(self.lines)
        kind, length = self._opened_by(index) if self.rows[index][2].strip() else ("blank", 1)
        self.lines += [Line(*row, kind) for row in self.rows[index : index + length]]

    def _opened_by(self, index: int) -> tuple[str, int]:
        """The kind of what a row opens, and its length in rows."""
        number, _, row = self.rows[index]
        follows_blank = not self.lines or self.lines[-1].kind != "prose"
        while _depth(row) < self.bases[-1] and follows_blank:
            self.bases.pop()
        indented = _depth(row) >= self.bases[-1] + TAB and follows_blank
        fence = None if indented else _FENCE.match(row)
        if fence:
            length = _fence_length(self.rows, index, fence)
            remedy = f"end it with {fence['fence']} at the same indentation"
            return "code", self._closed(length, number, f"this fence is never closed; {remedy}")
        if _COMMENT.match(row):
            length = _comment_length(self.rows, index)
            remedy = "end it with -->"
            return "code", self._closed(length, number, f"this comment is never closed; {remedy}")
        if not indented and _CONTAINER.match(row):
            self._open_container(_depth(row))
        return "code" if indented else "prose", 1

    def _closed(self, length: int, number: int, message: str) -> int:
        """Reads on behind a block without an end, so that one run finds every fault."""
        if not length:
            self.faults.append(Fault(self.page, number, message))
        return length or 1

    def _open_container(self, depth: int) -> None:
        while self.bases[-1] > depth:
            self.bases.pop()
        self.bases.append(depth - depth % TAB + TAB)


def _rows(text: str, first_line: int) -> Iterator[tuple[int, int, str]]:
    """Number, offset and text of each line."""
    start = 0
    for number, row in enumerate(text.split("\n"), first_line):
        yield number, start, row
        start += len(row) + 1


def _depth(row: str) -> int:
    return len(row) - len(row.lstrip(" "))


def _fence_length(rows: list[tuple[int, int, str]], index: int, fence: re.Match[str]) -> int:
    """Lines from the opening to the closing mark; 0 where the block or page ends without one."""
    closing = re.compile(rf"^[> ]*{fence['fence']}[ \t]*$")
    another = re.compile(rf"^{fence['indent']}{fence['fence']}[ ]*[\w.{{]")
    depth = len(fence["indent"])
    for end in range(index + 1, len(rows)):
        row = rows[end][2]
        if closing.match(row):
            return end - index + 1
        dedented = row.strip() and _depth(row) < depth
        if dedented or another.match(row):
            return 0
    return 0


def _comment_length(rows: list[tuple[int, int, str]], index: int) -> int:
    """Lines of a comment; 0 where the page ends without its end."""
    for end in range(index, len(rows)):
        if "-->" in rows[end][2]:
            return end - index + 1
    return 0
