"""Everything the two seeds say has its place in the course, and something there to back it."""

import tomllib
from collections import Counter
from functools import cache
from itertools import pairwise, takewhile
from pathlib import Path

import markdown
import pytest
from bs4 import BeautifulSoup, Tag

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

HEADINGS = ["h1", "h2", "h3", "h4", "h5", "h6"]
EVIDENCE = {
    "table": "table",
    "diagram": "svg, save-or-recompute",
    "formula": ".arithmatex",
    "run": "a[href^='capture:']",
}


def read_page(text: str) -> BeautifulSoup:
    """A lesson as HTML. The forms stay as they are written: the build resolves them."""
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
    rendered = markdown.markdown(text, extensions=extensions, extension_configs=settings)
    return BeautifulSoup(rendered, "html.parser")


def evidence(part: Tag) -> set[str]:
    found = {kind for kind, selector in EVIDENCE.items() if part.css.match(selector)}
    found |= {kind for kind, selector in EVIDENCE.items() if part.css.select_one(selector)}
    if any(p.get_text().startswith("::: run ") for p in [part, *part("p")] if not p.code):
        found.add("run")
    return found


def behind(page: BeautifulSoup, anchor: str) -> set[str]:
    """What backs an anchor.

    A heading is backed by its part of the page, up to the next heading of its level or above.
    Any other element is backed by what it holds, by the block that it comments on (the one just
    before it), and by what follows up to the next heading or anchor.
    """
    (element,) = page.find_all(id=anchor)
    parts = [element]
    if element.name in HEADINGS:
        ends = HEADINGS[: HEADINGS.index(element.name) + 1]
        parts += takewhile(lambda part: part.name not in ends, element.find_next_siblings())
    else:
        before = element.find_previous_sibling()
        parts += [before] if before is not None and (is_plain(before) or before.svg) else []
        parts += takewhile(is_plain, element.find_next_siblings())
    return set().union(*map(evidence, parts))


def is_plain(part: Tag) -> bool:
    return (
        part.name not in HEADINGS and not part.get("id") and part.find(["p", "li"], id=True) is None
    )


@cache
def lesson(page: str) -> BeautifulSoup:
    return read_page((LESSONS / f"{page}.md").read_text(encoding="utf-8"))


def test_behind_tells_what_backs_an_anchor() -> None:
    page = read_page(
        "# Page { #page }\n\n"
        "No evidence.\n{ #bare }\n\n"
        "A [1](capture:a/b#c) quote.\n{ #quote }\n\n"
        "## Part { #part }\n\nText.\n\n"
        "### Sub { #sub }\n\n::: run a/b#c\n\nA comment on it.\n{ #comment }\n\n"
        "No comment.\n{ #no-comment }\n\n"
        "## Shown { #shown }\n\n`::: run a/b#c`\n\n"
        '<figure id="figure"><svg><title id="inner">t</title></svg></figure>\n\n'
        "- item $x$\n  { #item }\n"
        "- next\n  { #next }\n"
    )
    assert behind(page, "page") == {"run", "diagram", "formula"}
    assert behind(page, "bare") == set()
    assert behind(page, "quote") == {"run"}
    assert behind(page, "part") == {"run"}
    assert behind(page, "sub") == {"run"}
    assert behind(page, "comment") == {"run"}
    assert behind(page, "no-comment") == set()
    assert behind(page, "shown") == {"diagram", "formula"}
    assert behind(page, "figure") == {"diagram"}
    assert behind(page, "item") == {"formula"}
    assert behind(page, "next") == set()


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
    times = len(lesson(page).find_all(id=anchor))
    assert times == 1, f"{name(section, item)}: {page}.md has #{anchor} {times} times, not once"
    assert behind(lesson(page), anchor), (
        f"{name(section, item)}: #{anchor} of {page}.md has no run, formula, table or diagram"
    )
