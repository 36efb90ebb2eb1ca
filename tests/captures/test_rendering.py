"""Pages built twice: the second time recalled, and then the same in everything."""

import json
import logging
import sys
from pathlib import Path

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

CONFIG = """
site_name: sandbox
site_url: https://site.org/b/
theme:
  name:
  custom_dir: theme
validation:
  links:
    not_found: warn
    anchors: warn
plugins:
  - captures
  - mkdocstrings:
      handlers:
        python:
          paths: [src]
markdown_extensions:
  - admonition
  - attr_list
  - captures
  - pymdownx.highlight
  - pymdownx.superfences
  - pymdownx.tabbed:
      alternate_style: true
  - toc
"""
MAIN = "{{ page.title }} {% for h in page.toc %}{{ h.id }} {% endfor %}\n{{ page.content }}\n"
INDEX = "# Home\n\n[One](lessons/one.md#first), [gelu][gk.gelu.gelu]\n"
PAGE = "# One\n\n## First\n\n::: run a/one#claim\n\n## Second\n\n[home](../index.md#home)\n"
QUOTING = "# Quoting\n\nIt says [2](capture:a/one#claim).\n"
SCRIPT = '# %% claim\nfrom gk.gelu import gelu\n\nprint("twice:", gelu(1))\n'


@pytest.fixture
def house(sandbox, caplog):
    caplog.set_level(logging.INFO, "mkdocs")
    limit = sys.getrecursionlimit()
    yield furnish(sandbox)
    sys.setrecursionlimit(limit)  # which mkdocstrings raises


def furnish(sandbox):
    sandbox.write("mkdocs.yml", CONFIG)
    sandbox.write("theme/main.html", MAIN)
    sandbox.write("src/gk/__init__.py", "")
    sandbox.write("src/gk/gelu.py", 'def gelu(x: int):\n    """Twice."""\n    return 2 * x\n')
    sandbox.example("a/one", SCRIPT)
    sandbox.record("a/one", {"claim": "twice: 2"})
    sandbox.write("docs/index.md", INDEX)
    sandbox.write("docs/symbols.md", "# Symbols\n\n::: gk.gelu\n")
    sandbox.write("docs/lessons/one.md", PAGE)
    sandbox.write("docs/quoting.md", QUOTING)
    return sandbox


def site(house, address: str = "") -> dict[str, bytes]:
    """Every file of the site as it is built now, or served under an address."""
    config = load_config(str(house.project.root / "mkdocs.yml"))
    # MkDocs makes the plugin once for all builds of a process.
    plugin = config.plugins["captures"]
    plugin.recapture, plugin.serving = None, bool(address)
    config.site_url = address or config.site_url
    build(config)
    folder = house.project.root / "site"
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {name: path.read_bytes() for name, path in files.items() if path.is_file()}


def kept(house) -> dict[str, Path]:
    folder = house.project.cache / "build/pages"
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.json")}


def doctor(house) -> None:
    """Mark what is kept of every page, so that a page that is recalled shows it."""
    for path in kept(house).values():
        known = json.loads(path.read_text())
        known["made"]["content"] += "<i>recalled</i>"
        path.write_text(json.dumps(known))


def recalled(pages: dict[str, bytes]) -> set[str]:
    return {name.removesuffix("index.html") for name, text in pages.items() if b"recalled" in text}


EVERY = {"", "symbols/", "lessons/one/", "quoting/", "runs/"}


def test_a_second_build_recalls_every_page_and_makes_the_same_site(house) -> None:
    first = site(house)
    assert b"twice: 2" in first["lessons/one/index.html"]
    assert b'href="symbols/#gk.gelu.gelu"' in first["index.html"]  # entered by another page
    assert b'href="../lessons/one/#run-a-one-claim"' in first["quoting/index.html"]
    assert site(house) == first
    doctor(house)
    assert recalled(site(house)) == EVERY


def test_a_site_that_is_served_shares_what_was_built(house) -> None:
    book = site(house)["notebooks/one.ipynb"]
    assert b"https://site.org/b/#home" in book
    doctor(house)
    served = site(house, "http://127.0.0.1:8000/b/")
    assert recalled(served) == EVERY
    assert served["notebooks/one.ipynb"] == book  # its links lead to the site from anywhere


@pytest.mark.parametrize(
    ("path", "old", "new", "anew"),
    [
        ("docs/lessons/one.md", "## Second", "## Other", {"lessons/one/"}),
        # There is one file less that a link could lead to.
        ("docs/lessons/one.md", "::: run a/one#claim", "None.", EVERY),
        ("examples/a/one.py", "print", "print ", {"lessons/one/", "quoting/"}),
        ("src/gk/gelu.py", "Twice.", "Two times.", {"lessons/one/", "quoting/", "symbols/"}),
        ("mkdocs.yml", "site_name: sandbox", "site_name: other", EVERY),
    ],
)
def test_what_a_page_is_made_of_makes_it_anew(house, path, old, new, anew) -> None:
    site(house)
    doctor(house)
    text = (house.project.root / path).read_text()
    assert old in text
    house.write(path, text.replace(old, new))
    assert EVERY - recalled(site(house)) - {"runs/"} == anew - {"runs/"}


def test_data_that_changes_makes_the_page_of_its_run_stale(house) -> None:
    house.write("examples/a/one.csv", "1\n")
    house.example("a/one", "# data: one.csv\n" + SCRIPT)
    house.record("a/one", {"claim": "twice: 2"})
    assert b"Stale" not in site(house)["lessons/one/index.html"]
    house.write("examples/a/one.csv", "2\n")
    assert b"Stale" in site(house)["lessons/one/index.html"]


def test_another_run_shows(house) -> None:
    site(house)
    house.record("a/one", {"claim": "twice: 2, as ever"})
    assert b"as ever" in site(house)["lessons/one/index.html"]


def test_a_file_that_a_page_links_to_moves(house, caplog) -> None:
    site(house)
    (house.project.docs / "lessons/one.md").rename(house.project.docs / "one.md")
    caplog.clear()
    site(house)
    assert any("link 'lessons/one.md#first'" in said for said in caplog.messages)


@pytest.mark.parametrize(
    ("page", "text", "complaint"),
    [
        ("docs/quoting.md", "[x](nowhere.md)\n", "a link 'nowhere.md', but"),
        ("docs/quoting.md", "[x](lessons/one.md#third)\n", "does not contain an anchor '#third'"),
        ("docs/quoting.md", "[x][gk.nothing]\n", "cross-reference target 'gk.nothing'"),
    ],
)
def test_what_is_said_of_a_page_is_said_by_every_build(
    house, caplog, page, text, complaint
) -> None:
    house.write(page, text)
    for _ in range(2):
        caplog.clear()
        site(house)
        assert sum(complaint in said for said in caplog.messages) == 1


def test_a_fault_is_reported_by_every_build(house, caplog) -> None:
    house.write("docs/quoting.md", QUOTING.replace("[2]", "[3]"))
    for _ in range(2):
        caplog.clear()
        with pytest.raises(Abort):
            site(house)
        assert any(said.startswith("docs/quoting.md:3: '3' does not") for said in caplog.messages)


def test_an_anchor_that_another_page_loses_is_missed(house, caplog) -> None:
    site(house)
    house.write("docs/lessons/one.md", PAGE.replace("## First\n\n", ""))
    caplog.clear()
    site(house)
    assert any("does not contain an anchor '#first'" in said for said in caplog.messages)


def test_a_quiet_build_hides_nothing_from_the_next(house, caplog) -> None:
    house.write("docs/quoting.md", "[x](nowhere.md)\n")
    caplog.set_level(logging.ERROR, "mkdocs")
    site(house)
    caplog.set_level(logging.INFO, "mkdocs")
    site(house)
    assert any("'nowhere.md'" in said for said in caplog.messages)


def test_what_was_kept_may_be_damaged(house) -> None:
    first = site(house)
    for path in kept(house).values():
        path.write_bytes(path.read_bytes()[:-20])
    assert site(house) == first
