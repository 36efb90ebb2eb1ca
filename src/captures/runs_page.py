"""The page that lists every recorded run: machine, date, duration, freshness."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import PurePosixPath

from captures.blocks import RUNS_PAGE, TITLES, anchor, entry, relative
from captures.expand import lesson_paths
from captures.project import Project, read_text
from captures.resolve import Resolver
from captures.script import script_names
from captures.transcript import MACHINES, Transcript

HEAD = """\
---
title: Runs
description: Every recorded run, with the machine it ran on.
---

# Runs

Every output, number and plot of this site was printed by one of these runs. A run is *fresh* while
the code that it recorded, the example and every module that it imports, is the code of this site.
"""

VERSIONS = ("torch", "triton", "python")


def runs_page(project: Project) -> str:
    """The page's Markdown; raises `Faults` where a script or transcript is damaged."""
    return _RunsPage(Resolver(project), _titles(project)).text()


@dataclass
class _RunsPage:
    resolver: Resolver
    titles: dict[str, str]  # by page

    def text(self) -> str:
        names = script_names(self.resolver.project)
        transcripts = {name: self._transcripts(name) for name in names}
        machines = _machines(each for found in transcripts.values() for each in found)
        lines = [HEAD, *_machine_lines(machines)]
        lessons = {lesson: list(of) for lesson, of in groupby(names, lambda n: n.split("/")[0])}
        for lesson in sorted(lessons, key=_position(self.resolver.project)):
            lines += ["", f"## {self._section(lesson)} {{ #{lesson} }}", ""]
            lines += _table_head("Example", "Machine", "Date", "Took", "Code", "Shown on")
            for name in lessons[lesson]:
                lines += self._rows(name, transcripts[name], machines)
        return "\n".join([*lines, ""])

    def _transcripts(self, name: str) -> list[Transcript]:
        library = self.resolver.library
        return library.transcripts(library.script(name))

    def _section(self, lesson: str) -> str:
        stem = lesson.replace("_", "-")
        found = [title for page, title in self.titles.items() if PurePosixPath(page).stem == stem]
        return found[0] if found else lesson.replace("_", " ").capitalize()

    def _rows(
        self, name: str, transcripts: list[Transcript], machines: Mapping[tuple, str]
    ) -> list[str]:
        script = self.resolver.library.script(name)
        places = self._places(name)
        page = f"docs/{RUNS_PAGE}"
        scripts = (
            f"[`{name.partition('/')[2]}`]({relative(page, f'scripts/{name}.py')})"
            f"{{ #{entry(name)} }} ([on its own]({relative(page, f'standalone/{name}.py')}))"
        )
        rows = []
        for each in transcripts:
            machine = f"[{machines[_identity(each)]}](#machines)"
            fresh = self.resolver.is_fresh(script, each)
            freshness = "fresh" if fresh else "**stale**{ .run-stale }"
            when = [_unbroken(each.provenance[key]) for key in ("date", "duration")]
            rows.append(_row(scripts, machine, *when, freshness, places))
            scripts = places = ""  # named once, in its first row
        return rows or [_row(scripts, "–", "–", "–", "not run", places)]

    def _places(self, name: str) -> str:
        places: dict[str, str] = {}
        for (target, cell), pages in self.resolver.places.items():
            if target == name:
                for page in pages:
                    places.setdefault(page, anchor(target, cell))
        links = []
        for page, fragment in sorted(places.items()):
            words = self.titles.get(page) or PurePosixPath(page).stem
            href = relative(f"docs/{RUNS_PAGE}", page.removeprefix("docs/"))
            links.append(f"[{words}]({href}#{fragment})")
        return ", ".join(links) or "–"


def _position(project: Project) -> Callable[[str], tuple[int, str]]:
    """A key that sorts folders of examples as the menu does, and behind them what is no lesson."""
    stems = [path.stem for path in lesson_paths(project)]
    positions = {stem.replace("-", "_"): index for index, stem in enumerate(stems)}
    return lambda lesson: (positions.get(lesson, len(stems)), lesson)


def _titles(project: Project) -> dict[str, str]:
    """What each page calls itself in its first lines, if it does."""
    titles = {}
    for path in sorted(project.docs.rglob("*.md")):
        page = project.relative(path)
        if found := re.match(r"---\ntitle: (.+)", read_text(path, page)):
            titles[page] = found[1].strip("\"'")
    return titles


def _identity(transcript: Transcript) -> tuple[str, ...]:
    """What tells the machine of a run, with its versions, from another."""
    said = transcript.provenance
    return (transcript.machine, said["device"], said["driver"], *(said[name] for name in VERSIONS))


def _machines(transcripts: Iterable[Transcript]) -> dict[tuple[str, ...], str]:
    """What each machine is called: by its kind, and by a number where there are several."""
    found = sorted({_identity(each) for each in transcripts}, key=_kind_then_rest)
    called = {}
    for kind, of_kind in groupby(found, lambda identity: identity[0]):
        several = list(of_kind)
        for number, identity in enumerate(several, 1):
            called[identity] = TITLES[kind] + (f" {number}" if len(several) > 1 else "")
    return called


def _kind_then_rest(identity: tuple[str, ...]) -> tuple[int, tuple[str, ...]]:
    return MACHINES.index(identity[0]), identity


def _machine_lines(machines: Mapping[tuple[str, ...], str]) -> list[str]:
    lines = ["", "## Machines { #machines }", ""]
    lines += _table_head("Machine", "Device", *(name.capitalize() for name in VERSIONS))
    for (_, device, driver, *versions), name in machines.items():
        with_driver = re.sub(", driver (unknown|none)", "", f"{device}, driver {driver}")
        lines.append(_row(name, with_driver, *versions))
    return lines


def _table_head(*columns: str) -> list[str]:
    return [_row(*columns), _row(*["---"] * len(columns))]


def _unbroken(words: str) -> str:
    return f"{words} {{ .unbroken }}"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"
