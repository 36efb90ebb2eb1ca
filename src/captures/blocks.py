"""A resolved form as ordinary Markdown: fences, tabs, and paragraphs with attributes.

The lines nest in whatever holds the form, since each begins with the form's own indentation.
"""

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from captures.fault import Fault
from captures.project import Project
from captures.resolve import Run, Source, View
from captures.transcript import Transcript

TITLES = {"gpu": "GPU", "cpu": "CPU"}
RUNS_PAGE = "runs.md"


@dataclass
class Site:
    """What the site around a page offers its forms.

    `project` is the checkout, found from the page where it is None; `repository` is the address
    under which the repository's files are read, empty if unknown;
    `publishes` says that the runnable scripts, plots and the Runs page are part of the site;
    `notes` says of a stale example what is being done about it. Where `faults` is a list,
    faults are collected there for the build to raise together.
    """

    project: Project | None = None
    repository: str = ""
    publishes: bool = False
    notes: Mapping[str, str] = field(default_factory=dict)
    faults: list[Fault] | None = None


def anchor(example: str, cell: str) -> str:
    """The fragment under which a page shows a run."""
    return f"run-{example.replace('/', '-')}-{cell}"


def entry(example: str) -> str:
    """The fragment of an example on the Runs page."""
    return example.replace("/", "-")


def relative(page: str, target: str) -> str:
    """The link from `page`, a path like docs/lessons/x.md, to `target` within docs/."""
    return os.path.relpath(f"docs/{target}", PurePosixPath(page).parent).replace(os.sep, "/")


def run_lines(run: Run, page: str, fragment: str, site: Site) -> list[str]:
    """The block of a `::: run` form on `page`, whose anchor is `fragment`."""
    name, cell = run.script.name, run.cell.name
    parts = [_linked(f"{name}.py", f"examples/{name}.py", site), f"cell `{cell}`"]
    if site.publishes:
        href = relative(page, f"runnable/{name}/{cell}.py")
        parts.append(f"[runnable script]({href}){{ .run-script }}")
    return [
        " · ".join(parts),
        f"{{: .run-head #{fragment} }}",
        "",
        *fence(run.cell.source, f'{{ .python .run-code data-run="{name}#{cell}" }}'),
        "",
        *_outputs(run, page, site),
    ]


def source_lines(source: Source, symbol: str, site: Site) -> list[str]:
    """The block of a `::: source` form."""
    lines = f"#L{source.first}-L{source.last}"
    return [
        _linked(f"{source.path}", source.path, site, lines) + f" · `{symbol}`",
        "{: .source-head }",
        "",
        *fence(source.code, f'{{ .python .source-code data-source="{source.path}:{symbol}" }}'),
        "",
    ]


def fence(text: str, info: str) -> list[str]:
    longest = max((len(ticks) for ticks in re.findall(r"`{3,}", text)), default=2)
    ticks = "`" * (longest + 1)
    return [ticks + info, *text.split("\n"), ticks]


def provenance(transcript: Transcript) -> str:
    """The machine of a transcript in words, with the date of the run."""
    said = transcript.provenance
    versions = [
        f"{name} {said[name]}"
        for name in ("torch", "triton")
        if said.get(name, "unknown") not in ("unknown", "none", "")
    ]
    return ", ".join([f"**{said['device']}**", *versions, said["date"][:10]])


def alt_text(words: str, index: int, count: int) -> str:
    """What stands for the plot where it is not seen."""
    return words if count == 1 else f"{words} Plot {index} of {count}"


def _linked(words: str, path: str, site: Site, fragment: str = "") -> str:
    if not site.repository:
        return f"`{words}`"
    return f"[`{words}`]({site.repository}{path}{fragment}){{ .source-link }}"


def _outputs(run: Run, page: str, site: Site) -> list[str]:
    if len(run.views) == 1:
        return _view(run, run.views[0], page, site)
    lines: list[str] = []
    for view in run.views:
        lines += [f'=== "{TITLES[view.transcripts[0].machine]}"', ""]
        lines += indented(_view(run, view, page, site), "    ")
    return lines


def _view(run: Run, view: View, page: str, site: Site) -> list[str]:
    lines = [*_label(run, view, page, site), ""]
    if view.output.text:
        lines += [*fence(view.output.text, "{ .text .run-output .no-copy }"), ""]
    for index, name in enumerate(view.output.figures, 1):
        lines += [_figure(run, name, index, len(view.output.figures), page), ""]
    return lines


def _label(run: Run, view: View, page: str, site: Site) -> list[str]:
    silent = not view.output.text and not view.output.figures
    what = "Measured on" if run.cell.measured else "Output on"
    if silent:
        what = "Ran, printing nothing, on"
    elif len(view.transcripts) > 1:
        what = "Output, identical on"
    words = f"{what} {' and '.join(map(provenance, view.transcripts))}"
    if site.publishes:
        href = f"{relative(page, RUNS_PAGE)}#{entry(run.script.name)}"
        words += f" · [run record]({href})"
    if view.stale:
        note = site.notes.get(run.script.name, "the code has changed since this run")
        words += f" · **Stale: {note}**{{ .run-stale }}"
    return [words, "{: .run-label }"]


def _figure(run: Run, name: str, index: int, count: int, page: str) -> str:
    path = run.script.path.with_name(name)
    href = relative(page, f"examples/{run.script.path.parent.name}/{name}")
    width, height = svg_size(path.read_text(encoding="utf-8"))
    size = f' width="{width}" height="{height}"' if width else ""
    alt = alt_text(run.words, index, count)
    alt = re.sub(r"([\\`*_\[\]])", r"\\\1", alt)
    return f'![{alt}]({href}){{ .run-figure{size} loading="lazy" }}'


_UNITS = {"": 1.0, "px": 1.0, "pt": 96 / 72, "in": 96.0, "cm": 96 / 2.54, "mm": 96 / 25.4}
_LENGTH = r"""\s{name}=["'](\d+(?:\.\d+)?)(px|pt|in|cm|mm|)["']"""


def svg_size(svg: str) -> tuple[int, int]:
    """Width and height of an SVG in CSS pixels; zeros where it does not say."""
    root = re.search(r"<svg\b[^>]*>", svg)
    lengths = [
        re.search(_LENGTH.format(name=name), root.group()) if root else None
        for name in ("width", "height")
    ]
    if not all(lengths):
        return 0, 0
    width, height = (round(float(size[1]) * _UNITS[size[2]]) for size in lengths if size)
    return width, height


def indented(lines: Iterable[str], indent: str) -> list[str]:
    return [indent + line if line else line for line in lines]
