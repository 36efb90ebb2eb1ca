"""A lesson has one number: in the menu, above its page, and where pages speak of it."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
LESSONS = sorted((DOCS / "lessons").glob("*.md"))
PAGES = sorted(DOCS.rglob("*.md"))

NUMBER = re.compile(r"(\d+) · ")
SPOKEN = re.compile(r"\[[^\]]*\blesson (\d+)[^\]]*\]\(([^)#]*)", re.IGNORECASE)


def title(page: Path) -> str:
    """What the menu says, whose entries in mkdocs.yml have no words of their own."""
    found = re.search(r'^title: "?(.*?)"?$', page.read_text(encoding="utf-8"), re.MULTILINE)
    assert found, page
    return found[1]


def number(words: str) -> int | None:
    found = NUMBER.match(words)
    return int(found[1]) if found else None


@pytest.mark.parametrize("page", LESSONS, ids=lambda page: page.stem)
def test_the_page_and_the_menu_agree(page):
    heading = re.search("^# (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert heading and number(heading[1]) == number(title(page))


def test_the_menu_counts_without_a_gap():
    menu = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    listed = [DOCS / path for path in re.findall(r"^ +- (lessons/.*\.md)$", menu, re.MULTILINE)]
    numbers = [n for n in map(number, map(title, listed)) if n is not None]
    assert sorted(listed) == LESSONS
    assert numbers == list(range(len(numbers))) and numbers


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_lesson_is_spoken_of_by_its_number(page):
    for spoken, target in SPOKEN.findall(page.read_text(encoding="utf-8")):
        assert number(title(page.parent / target)) == int(spoken), f"lesson {spoken} is {target}"


def test_the_home_page_lists_the_lessons_as_the_menu_does():
    home = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = re.findall(r"^- \[(\d+ · .+)\]\((.+)\)", home, re.MULTILINE)
    numbered = sorted(t for t in map(title, LESSONS) if number(t) is not None)
    for words, (begins, target) in zip(numbered, listed, strict=True):
        assert title(DOCS / target) == words
        assert words.startswith(begins)
