"""Pages as plain Markdown with code, outputs, quotes and values in place.

This is the way out of any site generator, and what llms-full.txt holds.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from captures.blocks import Site, anchor, indented, run_lines, source_lines
from captures.capture_links import is_definition, link_text
from captures.code_spans import without_code_spans
from captures.fault import Fault, Faults
from captures.forms import parse
from captures.lines import front_matter_lines, scan
from captures.plain import plain
from captures.project import Project, read_text
from captures.resolve import Resolver, Run, Source, Words
from captures.shown import Shown

_LEFT = re.compile(r"\bcapture:[^\s\"'<>()]+", re.IGNORECASE)


def expand(project: Project) -> str:
    """Every lesson in the order of the navigation; raises `Faults` of all of them."""
    faults: list[Fault] = []
    texts: list[str] = []
    for path in lesson_paths(project):
        try:
            body = "\n".join(plain(expand_page(project, path).split("\n")))
        except Faults as found:
            faults += found.faults
            continue
        texts.append(f"<!-- {project.relative(path)} -->\n\n{tidy(body)}")
    if faults:
        raise Faults(faults)
    return "\n".join(texts)


def lesson_paths(project: Project) -> list[Path]:
    """The lessons, in the order in which mkdocs.yml names them, the rest by name."""
    config = read_text(project.root / "mkdocs.yml", "mkdocs.yml")
    paths = sorted((project.docs / "lessons").glob("*.md"))
    named = {path: config.find(f"lessons/{path.name}") for path in paths}
    return sorted(paths, key=lambda path: (named[path] < 0, named[path], path.name))


def expand_page(
    project: Project, path: Path, show_run: Callable[[Run, Shown], list[str]] | None = None
) -> str:
    """One page's Markdown, without front matter, with every form in place; raises `Faults`.

    `show_run` gives the lines of a run block; without it they are those of the site's pages.
    """
    page = project.relative(path)
    text = read_text(path, page)
    skipped = front_matter_lines(text)
    text = "\n".join(text.split("\n")[skipped:])
    forms, faults = parse(text, page, skipped + 1)
    if not faults:  # else the forms at fault would be reported twice
        faults += _leftovers(text, forms, page, skipped + 1)
    resolver = Resolver(project)
    for form in reversed(forms):
        try:
            lines = _replacement(resolver, form, text[form.start : form.end], show_run)
        except Faults as found:
            faults += found.faults
            continue
        text = text[: form.start] + "\n".join(lines) + text[form.end :]
    if faults:
        raise Faults(faults)
    return _without_definitions(text, page)


def tidy(text: str) -> str:
    """At most one blank line between paragraphs, and one line end at the end."""
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def _replacement(
    resolver: Resolver,
    form: Shown,
    markdown: str,
    show_run: Callable[[Run, Shown], list[str]] | None,
) -> list[str]:
    resolved = resolver.resolve(form)
    if isinstance(resolved, Words):
        return [resolved.text if form.kind == "value" else link_text(markdown)]
    if isinstance(resolved, Source):
        lines = source_lines(resolved, form.key, Site())
    elif show_run is not None:
        lines = show_run(resolved, form)
    else:
        lines = run_lines(resolved, form.page, anchor(form.target, form.cell), Site())
    return indented(lines, form.indent)


def _leftovers(text: str, forms: list[Shown], page: str, first_line: int) -> Iterator[Fault]:
    """Targets that no form has taken up, and that would mean nothing outside this project."""
    for form in forms:
        text = text[: form.start] + " " * (form.end - form.start) + text[form.end :]
    for line in scan(text, page, first_line)[0]:
        if line.kind == "prose" and not is_definition(line.text):
            for target in _LEFT.findall(without_code_spans(line.text)):
                message = f"'{target}' stays as it is; write [words](capture:lesson/example#cell)"
                yield Fault(page, line.number, message)


def _without_definitions(text: str, page: str) -> str:
    lines, _ = scan(text, page)
    return "\n".join(
        line.text for line in lines if line.kind == "code" or not is_definition(line.text)
    )
