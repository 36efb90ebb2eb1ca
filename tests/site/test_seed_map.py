"""Everything the two seeds say has its place in the course, and something there to back it."""

import tomllib
from collections import Counter
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import markdown
import pytest

ROOT = Path(__file__).parents[2]
LESSONS = ROOT / "docs" / "lessons"
MAP = tomllib.loads(Path(__file__).with_name("seed_map.toml").read_text(encoding="utf-8"))
SEED_LINES = {"000": 130, "004": 608}
KINDS = {
    "heading",
    "table",
    "diagram",
    "listing",
    "output",
    "trap",
    "question",
    "solution",
    "claim",
    "widget",
}
PAGES = {
    0: "forward-half",
    1: "graph-node",
    2: "backward-kernel",
    3: "backward-grid",
    4: "rms-norm",
}

ITEMS = [(section, item) for section in MAP["section"] for item in section["items"]]
PLACED = [(section, item) for section, item in ITEMS if "at" in item]


def name(section: dict, item: dict) -> str:
    return f"{section['seed']}:{item['line']} {item['says']}"


# --- a page, and what stands behind each of its anchors ---


@dataclass(frozen=True)
class Mark:
    """Something met while reading a page: an element with an id, a heading, or evidence."""

    anchor: str = ""
    level: int = 0  # of a heading
    evidence: str = ""
    depth: int = 0  # how deep the element lies in the page


VOID = {"br", "hr", "img", "input", "link", "meta", "wbr"}


class Marks(HTMLParser):
    """Reads a page's HTML into the list of its marks."""

    def __init__(self) -> None:
        super().__init__()
        self.marks: list[Mark] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        level = int(tag[1]) if len(tag) == 2 and tag[0] == "h" and tag[1].isdigit() else 0
        evidence = ""
        if tag in ("table", "svg"):
            evidence = tag
        elif "arithmatex" in (given.get("class") or ""):
            evidence = "formula"
        elif (given.get("href") or "").startswith("capture:"):
            evidence = "run"
        if given.get("id") or level or evidence:
            anchor = given.get("id") or ""
            self.marks.append(Mark(anchor, level, evidence, len(self.open)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass
        self.marks.append(Mark(depth=len(self.open)))

    def handle_data(self, data: str) -> None:
        if data.lstrip().startswith("::: run ") and "code" not in self.open:
            self.marks.append(Mark(evidence="run", depth=len(self.open)))


def read_marks(text: str) -> list[Mark]:
    """The marks of a lesson. The forms stay as they are written: the build resolves them."""
    if text.startswith("---\n"):
        text = text.split("\n---\n", 1)[1]
    extensions = [
        "admonition",
        "attr_list",
        "def_list",
        "footnotes",
        "md_in_html",
        "tables",
        "toc",
        "pymdownx.arithmatex",
        "pymdownx.details",
        "pymdownx.superfences",
        "pymdownx.tabbed",
    ]
    settings = {
        "pymdownx.arithmatex": {"generic": True},
        "pymdownx.tabbed": {"alternate_style": True},
    }
    reader = Marks()
    reader.feed(markdown.markdown(text, extensions=extensions, extension_configs=settings))
    return reader.marks


def behind(marks: list[Mark], anchor: str) -> set[str]:
    """What backs an anchor.

    A heading's part of the page ends at the next heading of its level or above. Any other
    element's is itself and what follows it, up to the next heading or element with an id.
    """
    start = next(index for index, mark in enumerate(marks) if mark.anchor == anchor)
    own = marks[start]
    found = {own.evidence}
    inside = True
    for mark in marks[start + 1 :]:
        inside = inside and mark.depth > own.depth
        if own.level:
            if mark.level and mark.level <= own.level:
                break
        elif not inside and (mark.anchor or mark.level):
            break
        found.add(mark.evidence)
    return found - {""}


@cache
def page_marks(page: str) -> list[Mark]:
    return read_marks((LESSONS / f"{page}.md").read_text(encoding="utf-8"))


def test_behind_tells_where_an_anchors_part_of_the_page_ends() -> None:
    marks = read_marks(
        "# Page { #page }\n\n"
        "No evidence.\n{ #bare }\n\n"
        "A [1](capture:a/b#c) quote.\n{ #quote }\n\n"
        "## Part { #part }\n\nText.\n\n"
        "### Sub { #sub }\n\n::: run a/b#c\n\n"
        "## Shown { #shown }\n\n`::: run a/b#c`\n\n"
        '<figure id="figure"><svg><title id="inner">t</title></svg></figure>\n\n'
        "- item $x$\n  { #item }\n"
        "- next\n  { #next }\n"
    )
    assert behind(marks, "page") == {"run", "svg", "formula"}
    assert behind(marks, "bare") == set()
    assert behind(marks, "quote") == {"run"}
    assert behind(marks, "part") == {"run"}
    assert behind(marks, "sub") == {"run"}
    assert behind(marks, "shown") == {"svg", "formula"}
    assert behind(marks, "figure") == {"svg"}
    assert behind(marks, "item") == {"formula"}
    assert behind(marks, "next") == set()


# --- the map ---


@pytest.mark.parametrize("seed", SEED_LINES)
def test_sections_cover_every_line_of_a_seed(seed: str) -> None:
    spans = [tuple(section["lines"]) for section in MAP["section"] if section["seed"] == seed]
    assert spans[0][0] == 1
    assert spans[-1][1] == SEED_LINES[seed]
    for (_, end), (start, _) in pairwise(spans):
        assert start == end + 1


def test_each_item_is_whole() -> None:
    for section, item in ITEMS:
        first, last = section["lines"]
        assert first <= item["line"] <= last, name(section, item)
        assert item["kind"] in KINDS, name(section, item)
        assert ("at" in item) != ("lesson" in item), name(section, item)


def test_a_row_is_open_only_while_its_lesson_is_not_written() -> None:
    overdue = [
        f"{name(section, item)}: docs/lessons/{PAGES[item['lesson']]}.md is there; give the anchor"
        for section, item in ITEMS
        if "lesson" in item and (LESSONS / f"{PAGES[item['lesson']]}.md").exists()
    ]
    assert not overdue, "\n".join(overdue)


def test_no_two_items_share_an_anchor() -> None:
    counts = Counter(item["at"] for _, item in PLACED)
    shared = [
        f"{name(section, item)}: {item['at']}" for section, item in PLACED if counts[item["at"]] > 1
    ]
    assert not shared, "\n".join(shared)


@pytest.mark.parametrize(("section", "item"), PLACED, ids=[item["at"] for _, item in PLACED])
def test_an_item_is_carried(section: dict, item: dict) -> None:
    page, anchor = item["at"].split("#")
    assert (LESSONS / f"{page}.md").exists(), f"{name(section, item)}: no page {page}.md"
    marks = page_marks(page)
    times = sum(mark.anchor == anchor for mark in marks)
    assert times == 1, f"{name(section, item)}: {page}.md has #{anchor} {times} times, not once"
    assert behind(marks, anchor), (
        f"{name(section, item)}: #{anchor} of {page}.md has no run, formula, table or diagram"
    )
