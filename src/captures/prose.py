"""Figures and error texts that a lesson states without a run behind them.

A decimal, a figure with a unit or the text of an error has to be a quote, a pulled value or part
of a formula, or be excused by a footnote in its sentence (or table cell) that names the source.
"""

import re
from collections.abc import Iterator
from functools import partial

from captures.capture_links import is_definition
from captures.fault import Fault, Faults
from captures.forms import parse
from captures.library import library
from captures.lines import Line, front_matter_lines, scan
from captures.project import Project, read_text

_UNITS = (
    r"[KMGT]i?B(?:/s)?|[KMGTP]?FLOPS|[KMGTP]FLOPs?(?:/s)?|FLOPs?/s|"
    r"[munµμ]s|s|h|%|W|[MG]Hz|[×x](?!\s?\d)"
)
_FIGURES = (
    re.compile(r"(?<![\w.,/-])[-+−]?\d+\.\d+(?:e[-+]?\d+)?(?![\d.]*\.\d)\b"),
    re.compile(r"(?<![\w.,-])\d+e[-+]?\d+\b"),
    re.compile(rf"(?<![\w.,-])\d[\d,]*\s?(?:{_UNITS})(?![\w/])"),
)
_ERROR = re.compile(r"\b\w*(?:Error|Exception|Warning):\s+\S[^`|]{0,40}")
# The version of a named program is a fact about the program.
_VERSION = re.compile(r"\b(?:Python|PyTorch|torch|Triton|triton|CUDA|NumPy|MkDocs)\s+v?\d[\w.]*")

_HIDDEN = (
    re.compile(r"\$\$.+?\$\$|(?<!\\)\$(?!\s).+?(?<!\s)\$|\\\(.+?\\\)|\\\[.+?\\\]", re.DOTALL),
    re.compile(r"<!--.*?-->|</?[A-Za-z][^>]*>", re.DOTALL),
    re.compile(r"(?<=\])\([^)\s]*(?:\s+\"[^\"]*\")?\)"),
    re.compile(r"(?<=[\])`*}\w\s])\{:?\s*[.#\w][^}\n]*\}"),
    _VERSION,
)
_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_FOOTNOTE = re.compile(r"^ *\[\^[^\]]+\]:")
_SENTENCE_END = re.compile(r"[.!?](?=\s|$|\[\^)|\|")
_REFERENCE = re.compile(r"\[\^[^\]]+\]")


def check_prose(project: Project) -> list[Fault]:
    """A fault for every such figure in the lessons, sorted."""
    faults: list[Fault] = []
    for path in sorted((project.docs / "lessons").glob("*.md")):
        page = project.relative(path)
        try:
            text = read_text(path, page)
        except Faults as unreadable:
            faults += unreadable.faults
            continue
        faults += library(project).judge("prose", [page, text], partial(_check_page, text, page))
    return sorted(set(faults))


def _check_page(text: str, page: str) -> Iterator[Fault]:
    skipped = front_matter_lines(text)
    text = "\n".join(text.split("\n")[skipped:])
    lines, _ = scan(text, page)
    forms, _ = parse(text, page)
    for form in forms:
        text = _hide(text, form.start, form.end)
        if form.kind == "run":
            for _, message in _check_paragraph(form.text):
                yield Fault(page, form.line + skipped, message)
    for paragraph in _paragraphs(lines):
        start, end = paragraph[0].start, paragraph[-1].start + len(paragraph[-1].text)
        for offset, message in _check_paragraph(text[start:end]):
            line = paragraph[0].number + skipped + text.count("\n", start, start + offset)
            yield Fault(page, line, message)


def _paragraphs(lines: list[Line]) -> Iterator[list[Line]]:
    """Runs of prose lines; a footnote and a definition of a link hold sources, not claims."""
    paragraph: list[Line] = []
    excused = False
    for line in lines:
        if line.kind != "prose":
            if paragraph and not excused:
                yield paragraph
            paragraph = []
            # An indented paragraph after a footnote still belongs to it.
            excused = excused and line.kind == "blank"
        elif _FOOTNOTE.match(line.text):
            if paragraph and not excused:
                yield paragraph
            paragraph, excused = [line], True
        elif not is_definition(line.text):
            excused = excused and (bool(paragraph) or line.text.startswith("    "))
            paragraph.append(line)
    if paragraph and not excused:
        yield paragraph


def _check_paragraph(text: str) -> Iterator[tuple[int, str]]:
    for pattern in _HIDDEN:
        text = pattern.sub(lambda found: _blank(found.group()), text)
    for error in _ERROR.finditer(text):
        if not _is_excused(text, error.end()):
            yield error.start(), _message(error.group().strip())
    words = _CODE_SPAN.sub(lambda found: _blank(found.group()), text)
    found = sorted((f.start(), f.group(), f.end()) for p in _FIGURES for f in p.finditer(words))
    reach = 0
    for start, figure, end in found:
        if start >= reach and not _is_excused(words, end):
            yield start, _message(figure)
        reach = max(reach, end)


def _is_excused(text: str, position: int) -> bool:
    """Whether a footnote is referred to before the sentence or table cell ends, or right after."""
    stop = _SENTENCE_END.search(text, position)
    end = stop.end() if stop else len(text)
    sentence = text[position:end]
    following = _REFERENCE.match(text, end)
    return bool(_REFERENCE.search(sentence) or following)


def _message(figure: str) -> str:
    return (
        f"'{figure}' is typed by hand; quote the run that printed it, pull it as a value, "
        "or name its source in a footnote"
    )


def _blank(text: str) -> str:
    return re.sub(r"[^\n]", " ", text)


def _hide(text: str, start: int, end: int) -> str:
    return text[:start] + _blank(text[start:end]) + text[end:]
