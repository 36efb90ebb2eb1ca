"""The lines of a Markdown page: which are prose and which are code, nested as Markdown nests."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
    rows = list(_rows(text, first_line))
    faults: list[Fault] = []
    lines: list[Line] = []
    bases = [0]  # where the content of each open list item, tab or admonition begins
    index = 0
    while index < len(rows):
        number, _, row = rows[index]
        length = 1
        if not row.strip():
            kind = "blank"
        else:
            depth = len(row) - len(row.lstrip(" "))
            while depth < bases[-1] and _follows_blank(lines):
                bases.pop()
            indented = depth >= bases[-1] + TAB and _follows_blank(lines)
            fence = None if indented else _FENCE.match(row)
            kind = "code" if indented or fence else "prose"
            if fence:
                length = _fence_length(rows, index, fence)
                if not length:
                    faults.append(_unclosed(page, number, fence["fence"]))
                    length = 1  # read on, so that one run finds every fault
            elif _COMMENT.match(row):
                kind, length = "code", _comment_length(rows, index)
                if not length:
                    faults.append(
                        Fault(page, number, "this comment is never closed; end it with -->")
                    )
                    length = 1
            elif kind == "prose" and _CONTAINER.match(row):
                while bases[-1] > depth:
                    bases.pop()
                bases.append(depth - depth % TAB + TAB)
        lines += [Line(*rows[i], kind) for i in range(index, index + length)]
        index += length
    return lines, faults


def _rows(text: str, first_line: int) -> Iterator[tuple[int, int, str]]:
    start = 0
    for number, row in enumerate(text.split("\n"), first_line):
        yield number, start, row
        start += len(row) + 1


def _follows_blank(lines: list[Line]) -> bool:
    return not lines or lines[-1].kind != "prose"


def _fence_length(rows: list[tuple[int, int, str]], index: int, fence: re.Match[str]) -> int:
    """Lines from the opening to the closing mark; 0 where the block or page ends without one."""
    closing = re.compile(rf"^[> ]*{fence['fence']}[ \t]*$")
    another = re.compile(rf"^{fence['indent']}{fence['fence']}[ ]*[\w.{{]")
    depth = len(fence["indent"])
    for end in range(index + 1, len(rows)):
        row = rows[end][2]
        if closing.match(row):
            return end - index + 1
        dedented = row.strip() and len(row) - len(row.lstrip(" ")) < depth
        if dedented or another.match(row):
            return 0
    return 0


def _comment_length(rows: list[tuple[int, int, str]], index: int) -> int:
    """Lines of a comment; 0 where the page ends without its end."""
    for end in range(index, len(rows)):
        if "-->" in rows[end][2]:
            return end - index + 1
    return 0


def _unclosed(page: str, line: int, fence: str) -> Fault:
    return Fault(
        page, line, f"this fence is never closed; end it with {fence} at the same indentation"
    )
