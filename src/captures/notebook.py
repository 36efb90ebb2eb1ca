"""A lesson as one notebook: its prose, its runs with their recorded outputs, kernels written out.

Every cell of a notebook shares one namespace, where the lesson's examples are files of their own.
So a cell comes after all cells that stand before it in its example, and definitions or cells are
repeated where another example has bound one of their names in between.
"""

import base64
import hashlib
import html
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

from captures.blocks import alt_text, provenance, svg_size
from captures.definitions import Definition, parse_module
from captures.expand import expand_page, tidy
from captures.figures import inked
from captures.inline import Inlined, bound_by, inline
from captures.library import library
from captures.origins import Import
from captures.plain import plain
from captures.project import Project
from captures.resolve import Run
from captures.script import Script
from captures.shown import Shown
from captures.standalone import INTERPRETS, definition_lines, import_lines


def notebook(project: Project, page: Path, site_url: str = "") -> str:
    """The notebook of the lesson at `page` as JSON; raises `Faults`.

    Relative links are made absolute with `site_url`, since the file is read away from the site.
    """
    marks: dict[str, tuple[str, str]] = {}
    words: dict[tuple[str, str], str] = {}

    def show_run(run: Run, form: Shown) -> list[str]:
        mark = f"RUN-{len(marks)}"
        marks[mark] = (form.target, form.cell)
        words[marks[mark]] = run.words
        return ["", mark, ""]

    text = "\n".join(plain(expand_page(project, page, show_run).split("\n")))
    scripts = {name: library(project).script(name) for name, _ in marks.values()}
    # Definitions keep clear of every example's names, so that each is written out only once.
    names = {name for script in scripts.values() for name in bound_by(script, script.cells)}
    writer = _Notebook(project, frozenset(names), words)
    address = page.relative_to(project.docs).as_posix()
    for piece in re.split(r"^[> ]*(RUN-\d+) *$", text, flags=re.MULTILINE):
        if piece in marks:
            writer.add_run(*marks[piece])
        else:
            writer.add_prose(_with_absolute_links(piece, address, site_url))
    return writer.text()


@dataclass
class _Notebook:
    project: Project
    taken_names: frozenset[str]
    words: dict[tuple[str, str], str]  # what the plots of a cell show, where the page shows them
    cells: list[dict[str, Any]] = field(default_factory=list)
    done: dict[str, int] = field(default_factory=dict)  # example: how many of its cells stand
    changed: dict[str, set[str]] = field(default_factory=dict)  # example: names others bound since
    defined: dict[tuple[str, str], Definition] = field(default_factory=dict)  # still unharmed
    imported: set[Import] = field(default_factory=set)  # still bound to what they bound
    futures: set[Import] = field(default_factory=set)
    machines: set[str] = field(default_factory=set)
    guarded: bool = False  # whether it stands what happens without a GPU

    def add_prose(self, markdown: str) -> None:
        # A run within a quotation leaves empty quotation lines around it.
        text = re.sub(r"\A(?:>?\s*\n)+|(?:\n>?\s*)+\Z", "\n", f"\n{markdown}\n")
        text = tidy(textwrap.dedent(text))
        if text.strip():
            self._add("markdown", text.rstrip("\n"))

    def add_run(self, example: str, name: str) -> None:
        """A cell of an example, with those before it that do not stand yet."""
        script = library(self.project).script(example)
        wanted = [cell.name for cell in script.cells].index(name) + 1
        if wanted <= self.done.get(example, 0):
            return
        parts = inline(self.project, script, script.cells, self.taken_names)
        rest = " ".join(parts.cells[self.done.get(example, 0) : wanted])
        if self.changed.get(example, set()) & _words(rest):
            self.done[example] = 0
        self._add_definitions(parts)
        for index in range(self.done.get(example, 0), wanted):
            self._add_cell(script, index, parts.cells[index])
        self.done[example] = wanted
        self.changed[example] = set()

    def _add_definitions(self, parts: Inlined) -> None:
        futures = {each for each in parts.imports if each.module == "__future__"}
        self.futures |= futures
        guard = None if self.guarded or "triton" not in parts.packages else INTERPRETS
        self.guarded = self.guarded or guard is not None
        wanted = {*parts.imports, *(guard.imports if guard else ())}
        imports = wanted - futures - self.imported
        self._import(imports)
        modules = [
            (origin, [d for d in definitions if (origin, d.text) not in self.defined])
            for origin, definitions in parts.modules
        ]
        blocks = [f"# {origin}\n\n\n{definition_lines(each)}" for origin, each in modules if each]
        # All of a block at once, since its definitions use each other in either direction.
        self._bind("", {name for _, ds in modules for d in ds for name in d.names})
        self.defined |= {(origin, d.text): d for origin, ds in modules for d in ds}
        text = "\n\n\n".join(filter(None, [import_lines(imports, guard), *blocks]))
        if text:
            self._add("code", text, outputs=[], execution_count=None)

    def _import(self, imports: set[Import]) -> None:
        """Note what is imported now: `import os` still holds after `import os.path`."""
        targets = {each.bound: each.target for each in imports}
        lost = {
            each for each in self.imported if targets.get(each.bound) not in (None, each.target)
        }
        self.imported = self.imported - lost | imports

    def _add_cell(self, script: Script, index: int, code: str) -> None:
        if not code:
            return
        bound = parse_module(script.path, code).by_name
        self._bind(script.name, _words(code) & _RANDOM | set(bound))
        name = script.cells[index].name
        origin = {"example": script.name, "cell": name}
        outputs = self._outputs(script, name)
        self._add("code", code, outputs=outputs, execution_count=None, metadata=origin)

    def _bind(self, example: str, names: Any) -> None:
        """Note which examples and definitions lose a name to a new binding of it."""
        for other, changed in self.changed.items():
            if other != example:
                changed.update(names)
        self.imported = {each for each in self.imported if each.bound not in names}
        self.defined = {
            key: definition
            for key, definition in self.defined.items()
            if not definition.uses.union(definition.names).intersection(names)
        }

    def _outputs(self, script: Script, cell: str) -> list[dict[str, Any]]:
        for transcript in library(self.project).transcripts(script):
            output = transcript.output(cell)
            if output is not None:
                self.machines.add(provenance(transcript))
                outputs = [_stream(output.text)] if output.text else []
                words = self.words.get((script.name, cell))
                figures = [script.path.with_name(name) for name in output.figures if words]
                return [*outputs, *_plots(words or "", figures)]
        return []

    def _add(self, kind: str, source: str, **more: Any) -> None:
        seed = f"{len(self.cells)} {source}"
        identity = hashlib.sha256(seed.encode()).hexdigest()[:12]
        cell = {"cell_type": kind, "id": identity, "metadata": {}, "source": _lines(source)}
        self.cells.append(cell | more)

    def _insert(self, index: int, kind: str, source: str, **more: Any) -> None:
        after = self.cells[index:]
        del self.cells[index:]
        self._add(kind, source, **more)
        self.cells += after

    def text(self) -> str:
        if self.futures:
            # Python takes these before any other code only, should somebody join the cells.
            first = [cell["cell_type"] for cell in self.cells].index("code")
            source = import_lines(sorted(self.futures))
            self._insert(first, "code", source, outputs=[], execution_count=None)
        if self.machines:
            note = f"The outputs below were recorded on {'; '.join(sorted(self.machines))}."
            self._insert(1, "markdown", note)
        content = {
            "cells": self.cells,
            "metadata": {
                "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
                "language_info": {"name": "python"},
            },
            "nbformat": 4,
            "nbformat_minor": 5,
        }
        return json.dumps(content, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def _stream(text: str) -> dict[str, Any]:
    return {"name": "stdout", "output_type": "stream", "text": _lines(text + "\n")}


def _plots(words: str, figures: list[Path]) -> Iterator[dict[str, Any]]:
    """Plots as images of their own: an SVG put into the page would bring its styles along."""
    for index, path in enumerate(figures, 1):
        svg = inked(path.read_bytes())
        width, height = svg_size(svg.decode())
        alt = alt_text(words, index, len(figures))
        source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
        image = f'<img alt="{html.escape(alt)}" width="{width}" height="{height}" src="{source}">'
        yield {
            "data": {"text/html": [image], "text/plain": [alt]},
            "metadata": {},
            "output_type": "display_data",
        }


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def _words(code: str) -> set[str]:
    words = set(re.findall(r"\w+", code))
    return words | _RANDOM if words & _RANDOM else words


# Whoever uses one of these moves the random state that the others draw from.
_RANDOM = frozenset(
    {"bernoulli", "dropout", "manual_seed", "normal_", "rand", "randint", "randn", "randn_like"}
    | {"rand_like", "random", "randperm", "uniform_"}
)


_LINK = re.compile(r"(?P<before>\]\(<?)(?P<href>(?![a-z+]+:|/)[^)\s>]+)")


def _with_absolute_links(markdown: str, page: str, site_url: str) -> str:
    if not site_url:
        return markdown

    def absolute(link: re.Match[str]) -> str:
        path, mark, fragment = link["href"].partition("#")
        target = urljoin(f"/{page}", path or page.rpartition("/")[2]).lstrip("/")
        target = re.sub(r"(^|/)(?:index|README)\.md$", r"\1", target)
        target = re.sub(r"\.md$", "/", target)
        return link["before"] + urljoin(site_url, target) + mark + fragment

    return _LINK.sub(absolute, markdown)
