"""The four forms as a Python-Markdown extension, for any generator that uses Python-Markdown.

`::: run` and `::: source` become fences and tabs before fences are read; `capture:` links get
their words and targets after inline Markdown is read, so that reference links, tables and code
spans work. A fault raises the generator's own error for a clean message; where the MkDocs
plugin collects faults (`Site.faults`), it shows in the page instead and the build fails later.
"""

import html
import re
import sys
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.preprocessors import Preprocessor
from markdown.treeprocessors import Treeprocessor
from markdown.util import HTML_PLACEHOLDER_RE, AtomicString

from captures.blocks import (
    RUNS_PAGE,
    Site,
    anchor,
    entry,
    indented,
    provenance,
    relative,
    run_lines,
    source_lines,
)
from captures.capture_links import is_capture, link_form
from captures.fault import Fault, Faults
from captures.forms import parse
from captures.lines import front_matter_lines
from captures.project import Project
from captures.resolve import Resolver, Run, Source, Words
from captures.shown import Shown


class CapturesExtension(Extension):
    """`repository` is the address of the repository's files; the plugin hands over `site`."""

    def __init__(self, **options: Any):
        self.config = {
            "repository": ["", "address under which the repository's files can be read"],
            "site": ["", "what the site offers, a Site set by the MkDocs plugin"],
        }
        super().__init__(**options)

    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Python-Markdown's name
        md.registerExtension(self)
        site = self.getConfig("site") or Site(repository=self.getConfig("repository"))
        self.page = _Page(md, site)
        # After line ends are normalised (30), before fences are read (25).
        md.preprocessors.register(_Blocks(md, self.page), "capture_blocks", 27)
        # After inline Markdown (20), before MkDocs extracts anchors (5) and rewrites links (0).
        md.treeprocessors.register(_Links(md, self.page), "capture_links", 15)

    def reset(self) -> None:
        self.page.begin()


def makeExtension(**options: Any) -> CapturesExtension:  # noqa: N802 - Python-Markdown's name
    return CapturesExtension(**options)


class _Page:
    """The page in work: its name, its forms and the faults found so far."""

    def __init__(self, md: Markdown, site: Site):
        self.md = md
        self.site = site
        self.begin()

    def begin(self) -> None:
        self.source = ""
        self.name = ""
        self.first_line = 1
        self.links: list[Shown] = []
        self.local: set[tuple[str, str]] = set()
        self.faults: list[Fault] = []

    def read(self, text: str) -> list[Shown]:
        """Take up a page's Markdown, find its forms and note what is wrong with them."""
        path = _page_path(self.md)
        self.source = text
        if not _may_hold_forms(text):
            return []
        project = self.site.project or _find_project(path.parent if path else Path.cwd())
        self.name, self.first_line = _place(project, path)
        self.resolver = Resolver(project)
        forms, faults = parse(text, self.name, self.first_line)
        self.faults += faults
        self.links = [form for form in forms if form.kind in ("quote", "value")]
        self.local = {(form.target, form.cell) for form in forms if form.kind == "run"}
        return [form for form in forms if form.kind in ("run", "source")]

    def resolve(self, form: Shown) -> Run | Source | Words | None:
        try:
            return self.resolver.resolve(form)
        except Faults as found:
            self.faults += found.faults
            return None

    def finish(self) -> None:
        """Hand the faults to the build that collects them, or raise."""
        faults, self.faults = self.faults, []
        if self.site.faults is not None:
            self.site.faults += faults
        elif faults:
            raise _generator_error()(str(Faults(faults)))

    def line_of(self, href: str, text: str) -> int:
        """The line of a link that the tree holds, from the forms found in the text."""
        same = [form for form in self.links if _same_link(form, href)]
        for form in [*(form for form in same if form.text == text), *same][:1]:
            self.links.remove(form)
            return form.line
        position = self.source.find(href)
        return self.first_line + self.source.count("\n", 0, max(position, 0))


class _Blocks(Preprocessor):
    def __init__(self, md: Markdown, page: _Page):
        super().__init__(md)
        self.page = page

    def run(self, lines: list[str]) -> list[str]:
        forms = {form.line: form for form in self.page.read("\n".join(lines))}
        malformed = {fault.line: fault for fault in self.page.faults}
        uses: Counter[str] = Counter()
        result: list[str] = []
        for number, line in enumerate(lines, self.page.first_line):
            if number in forms:
                result += self._block(forms[number], uses)
            elif number in malformed and line.lstrip().startswith(":::"):
                # No other extension may see it: mkdocstrings would end the build over it.
                indent = line[: len(line) - len(line.lstrip())]
                result += indented(["", *_failure([malformed[number]])], indent)
            else:
                result.append(line)
        return result

    def _block(self, form: Shown, uses: Counter[str]) -> list[str]:
        before = len(self.page.faults)
        resolved = self.page.resolve(form)
        if isinstance(resolved, Source):
            block = source_lines(resolved, form.key, self.page.site)
        elif isinstance(resolved, Run):
            block = run_lines(resolved, form.page, _fragment(form, uses), self.page.site)
        elif form.kind == "run":
            # Links to it lead here, so that MkDocs has nothing of its own to say of them.
            title = [f"`{form.target}#{form.cell}`", f"{{: #{_fragment(form, uses)} }}", ""]
            block = _failure(self.page.faults[before:], title)
        else:
            block = _failure(self.page.faults[before:])
        return indented(["", *block, ""], form.indent)


def _fragment(form: Shown, uses: Counter[str]) -> str:
    """The form's anchor; every further one of the same run on a page gets a number."""
    fragment = anchor(form.target, form.cell)
    uses[fragment] += 1
    return fragment if uses[fragment] == 1 else f"{fragment}-{uses[fragment]}"


def _failure(faults: list[Fault], title: Sequence[str] = ()) -> list[str]:
    """What a page under edit shows in the place of a form that cannot be resolved."""
    lines = ['!!! failure "This block cannot be shown"', "", *indented(title, "    ")]
    for fault in faults:
        lines += [*indented(["```{ .text .no-copy }", str(fault), "```"], "    "), ""]
    return lines


class _Links(Treeprocessor):
    def __init__(self, md: Markdown, page: _Page):
        super().__init__(md)
        self.page = page

    def run(self, root: Element) -> None:
        for element in root.iter():
            for attribute in ("href", "src"):
                href = element.get(attribute, "")
                if is_capture(href):
                    self._put_in(element, attribute, href)
        self._refuse_raw_html()
        for form in self.page.links:
            message = "no link comes of this; it stands in raw HTML or within another link"
            self.page.faults.append(Fault(form.page, form.line, message))
        self.page.finish()

    def _refuse_raw_html(self) -> None:
        """Targets in raw HTML, which is kept apart from the tree."""
        for raw in self.md.htmlStash.rawHtmlBlocks:
            for href in _RAW_TARGET.findall(raw if isinstance(raw, str) else ""):
                message = f"'{href}' stands in raw HTML; write the link in Markdown"
                line = self.page.line_of(href, "")
                self.page.faults.append(Fault(self.page.name, line, message))

    def _put_in(self, element: Element, attribute: str, href: str) -> None:
        text = " ".join(self._words("".join(element.itertext())).split())
        form = self._form(href, text, is_image=element.tag == "img")
        words = self.page.resolve(form) if form else None
        if form is None or not isinstance(words, Words):
            element.set(attribute, "#")
            return
        if form.kind == "value":
            element.text = AtomicString(words.text)
        self._link(element, form, words)

    def _form(self, href: str, text: str, is_image: bool) -> Shown | None:
        line = self.page.line_of(href, text)
        known = len(self.page.faults)
        form = link_form(href, text, self.page.name, line, self.page.faults, image=is_image)
        if form is None and self.page.faults[-1] in self.page.faults[:known]:
            self.page.faults.pop()  # the text's own reading has found it, with a better line
        return form

    def _link(self, element: Element, form: Shown, words: Words) -> None:
        machines = " and on ".join(map(provenance, words.transcripts)).replace("**", "")
        stale = " capture-stale" if words.stale else ""
        href = self._target(form)
        attributes = {
            "class": f"capture-{form.kind}{stale}",
            "title": f"Printed by {form.target}, cell {form.cell}, on {machines}",
        }
        if href:
            attributes["href"] = href
        else:
            element.tag = "span"
            element.attrib.pop("href", None)
        for name, value in attributes.items():
            element.set(name, value)

    def _target(self, form: Shown) -> str:
        """The run where this page shows it, else where another does, else its record."""
        fragment = anchor(form.target, form.cell)
        if (form.target, form.cell) in self.page.local:
            return f"#{fragment}"
        pages = self.page.resolver.places.get((form.target, form.cell))
        if pages:
            return relative(self.page.name, pages[0].removeprefix("docs/")) + f"#{fragment}"
        if self.page.site.publishes:
            return f"{relative(self.page.name, RUNS_PAGE)}#{entry(form.target)}"
        return ""

    def _words(self, text: str) -> str:
        """The text as it is read: without entities, and with what inline Markdown keeps apart."""
        raw = self.md.htmlStash.rawHtmlBlocks
        text = HTML_PLACEHOLDER_RE.sub(lambda found: str(raw[int(found[1])]), text)
        return re.sub("\x02(\\d+)\x03", lambda found: chr(int(found[1])), html.unescape(text))


_RAW_TARGET = re.compile(r"""<\w[^>]*\s(?:href|src)=["']?(capture:[^"'\s>]*)""", re.IGNORECASE)


def _may_hold_forms(text: str) -> bool:
    return ":::" in text or "capture:" in text.lower() or "```" in text or "~~~" in text


def _same_link(form: Shown, href: str) -> bool:
    key = f":{form.key}" if form.key else ""
    machine = f"@{form.machine}" if form.machine else ""
    return href == f"capture:{form.target}#{form.cell}{key}{machine}"


@lru_cache(maxsize=256)
def _find_project(start: Path) -> Project:
    return Project.find(start)


def _place(project: Project, path: Path | None) -> tuple[str, int]:
    """The page's name and the line its Markdown begins on, after any front matter."""
    if path is None or not path.is_file():
        return "text without a page", 1
    text = path.read_text(encoding="utf-8-sig")
    return path.relative_to(project.root).as_posix(), front_matter_lines(text) + 1


def _page_path(md: Markdown) -> Path | None:
    """The file in work: MkDocs and ProperDocs say it in one place, Zensical in another."""
    if "relpath" in md.treeprocessors:
        path = getattr(getattr(md.treeprocessors["relpath"], "file", None), "abs_src_path", None)
        return Path(path).resolve() if path else None
    if "rendering_context" in md.preprocessors:
        page = getattr(md.preprocessors["rendering_context"], "page", None)
        path = getattr(page, "path", None)
        return (Path.cwd() / "docs" / path).resolve() if path else None
    return None


def _generator_error() -> type[Exception]:
    """The error that the running generator prints without a traceback."""
    for generator in ("properdocs", "mkdocs"):
        exceptions = sys.modules.get(f"{generator}.exceptions")
        if exceptions is not None:
            return exceptions.PluginError
    return ValueError
