"""The page that lists every recorded run: machine, versions, date, duration, freshness."""

import re

from captures.blocks import RUNS_PAGE, TITLES, anchor, entry, relative
from captures.project import Project, read_text
from captures.resolve import Resolver
from captures.script import script_names
from captures.transcript import Transcript

HEAD = """\
---
title: Runs
description: Every recorded run, with the machine it ran on.
---

# Runs

Every output, number and plot of this site was printed by one of these runs. A run is *fresh* while
the code that it recorded, the example and every module that it imports, is the code of this site.
"""

COLUMNS = ("Example", "Machine", "Torch", "Triton", "Python", "Date", "Took", "Code", "Shown on")


def runs_page(project: Project) -> str:
    """The page's Markdown; raises `Faults` where a script or transcript is damaged."""
    resolver = Resolver(project)
    titles = _titles(project)
    lines = [HEAD]
    lesson = ""
    for name in script_names(project):
        if name.split("/")[0] != lesson:
            lesson = name.split("/")[0]
            lines += [
                "",
                f"## {_section(titles, lesson)} {{ #{lesson} }}",
                "",
                _row(COLUMNS),
                _row(["---"] * len(COLUMNS)),
            ]
        lines += _rows(resolver, titles, name)
    return "\n".join([*lines, ""])


def _titles(project: Project) -> dict[str, str]:
    """What each page calls itself in its first lines, if it does."""
    titles = {}
    for path in project.docs.rglob("*.md"):
        page = project.relative(path)
        if found := re.match(r"---\ntitle: (.+)", read_text(path, page)):
            titles[page] = found[1].strip("\"'")
    return titles


def _section(titles: dict[str, str], lesson: str) -> str:
    page = f"docs/lessons/{lesson.replace('_', '-')}.md"
    return titles.get(page) or lesson.replace("_", " ").capitalize()


def _rows(resolver: Resolver, titles: dict[str, str], name: str) -> list[str]:
    script = resolver.library.script(name)
    places = _places(resolver, titles, name)
    page = f"docs/{RUNS_PAGE}"
    scripts = (
        f"[`{name.partition('/')[2]}`]({relative(page, f'scripts/{name}.py')}){{ #{entry(name)} }} "
        f"([on its own]({relative(page, f'standalone/{name}.py')}))"
    )
    rows = []
    for transcript in resolver.library.transcripts(script):
        fresh = resolver.is_fresh(script, transcript)
        rows.append(_row([scripts, *_facts(transcript), _freshness(fresh), places]))
        scripts = ""  # named once, in its first row
    return rows or [_row([scripts, *["–"] * 6, "not run", places])]


def _facts(transcript: Transcript) -> list[str]:
    said = transcript.provenance
    machine = f"{TITLES[transcript.machine]}: {said['device']}, driver {said['driver']}"
    facts = [said[key] for key in ("torch", "triton", "python", "date", "duration")]
    return [re.sub(", driver (unknown|none)", "", machine), *facts]


def _freshness(fresh: bool) -> str:
    return "fresh" if fresh else "**stale**{ .run-stale }"


def _places(resolver: Resolver, titles: dict[str, str], name: str) -> str:
    places: dict[str, str] = {}
    for (target, cell), pages in resolver.places.items():
        if target == name:
            for page in pages:
                places.setdefault(page, anchor(target, cell))
    links = []
    for page, fragment in sorted(places.items()):
        words = titles.get(page) or page.rpartition("/")[2].removesuffix(".md")
        href = relative(f"docs/{RUNS_PAGE}", page.removeprefix("docs/"))
        links.append(f"[{words}]({href}#{fragment})")
    return ", ".join(links) or "–"


def _row(cells: tuple[str, ...] | list[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
