"""The four forms a page can hold, found in its Markdown with the line they stand on.

    ::: run graph_node/invisible#launch             a cell's code and its output
    ::: run rms_norm/cost#plot "What is seen."      the same of a cell that plots
    ::: source gradkernels.gelu:gelu_kernel         a definition of src/ by symbol
    [0.5](capture:accumulation/stall#bf16)          a quote of what a cell printed
    [](capture:ceiling/gelu#bandwidth:gbps)         the value a cell printed as `gbps: ...`

A `capture:` target may end in `@gpu` or `@cpu`. Links may be inline or by reference.
Nothing is a form inside a fence, an indented code block, a code span or an HTML comment.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from captures.fault import Fault, Faults
from captures.lines import Line, front_matter_lines, scan
from captures.project import Project, read_text

VERBS = {"run": "lesson/example#cell", "source": "package.module:symbol"}


@dataclass(frozen=True)
class Shown:
    """One form of a page. `start` and `end` are its offsets in the parsed text."""

    page: str
    line: int
    kind: str  # "run" | "source" | "quote" | "value"
    target: str  # "graph_node/invisible", or the module of a source
    cell: str = ""
    key: str = ""  # of a value; the symbol of a source
    machine: str = ""  # "gpu" | "cpu" | "" for both
    text: str = ""  # the quoted words; of a run, what its plots show
    indent: str = field(default="", compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)


def read_pages(project: Project) -> tuple[list[Shown], list[Fault]]:
    """Every form of every page under docs/, and every fault in how they are written."""
    shown: list[Shown] = []
    faults: list[Fault] = []
    for path in page_paths(project):
        forms, wrong = read_page(project, path)
        shown += forms
        faults += wrong
    return shown, faults


def page_paths(project: Project) -> list[Path]:
    return sorted(project.docs.rglob("*.md"))


def read_page(project: Project, path: Path) -> tuple[tuple[Shown, ...], tuple[Fault, ...]]:
    stat = path.stat()
    page = path.relative_to(project.root).as_posix()
    return _read_page(path, page, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=1024)
def _read_page(
    path: Path, page: str, _mtime: int, _size: int
) -> tuple[tuple[Shown, ...], tuple[Fault, ...]]:
    try:
        text = read_text(path, page)
    except Faults as unreadable:
        return (), unreadable.faults
    skipped = front_matter_lines(text)
    body = "\n".join(text.split("\n")[skipped:])
    shown, faults = parse(body, page, first_line=skipped + 1)
    return tuple(shown), tuple(faults)


def parse(text: str, page: str, first_line: int = 1) -> tuple[list[Shown], list[Fault]]:
    """Forms of a Markdown text, in the order they stand in, and faults of their syntax."""
    lines, faults = scan(text, page, first_line)
    shown: list[Shown] = []
    prose: list[Line] = []
    for line in lines:
        if line.kind == "prose" and ":::" in line.text:
            form = _block_form(line, page, faults)
            if form is not None:
                shown.append(form)
            continue
        if line.kind != "code":
            prose.append(line)
    shown += _links(text, prose, page, faults)
    return sorted(shown, key=lambda form: form.start), faults


# --- ::: run and ::: source ---

_BLOCK = re.compile(r"^(?P<indent> *):::[ ]*(?P<verb>\S+)(?:[ ]+(?P<rest>.*?))?[ ]*$")
_STRAY = re.compile(rf":::[ ]*(?:{'|'.join(VERBS)})\b")
_RUN = re.compile(r"^(?P<target>[\w.-]+/[\w.-]+)#(?P<cell>[\w.-]+)(?: +\"(?P<words>[^\"]+)\")?$")
_SOURCE = re.compile(r"^(?P<module>\w+(?:\.\w+)*):(?P<symbol>\w+(?:\.\w+)*)(?P<words>)$")


def _block_form(line: Line, page: str, faults: list[Fault]) -> Shown | None:
    block = _BLOCK.match(line.text)
    if block is None:
        if _STRAY.search(without_code_spans(line.text)):
            faults.append(Fault(page, line.number, "a form needs a line of its own: ::: verb …"))
        return None
    verb, rest = block["verb"], block["rest"]
    if verb not in VERBS:
        # One word is mkdocstrings' own form, an identifier.
        if rest:
            faults.append(Fault(page, line.number, _unknown_verb(verb)))
        return None
    pattern = _RUN if verb == "run" else _SOURCE
    parts = pattern.match(rest or "")
    if parts is None:
        came = f"'{rest}'" if rest else "nothing"
        message = f"expected ::: {verb} {VERBS[verb]}, got {came} after '{verb}'"
        faults.append(Fault(page, line.number, message))
        return None
    target, part, words = parts.groups()
    return Shown(
        page,
        line.number,
        verb,
        target,
        cell=part if verb == "run" else "",
        key=part if verb == "source" else "",
        text=words or "",
        indent=block["indent"],
        start=line.start,
        end=line.start + len(line.text),
    )


def _unknown_verb(verb: str) -> str:
    known = " and ".join(f"::: {name} {target}" for name, target in VERBS.items())
    return f"unknown form '::: {verb} …'; there are {known}"


# --- capture: links ---

_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_NESTED = r"(?:\\.|[^\[\]\\]|\[(?:\\.|[^\[\]\\]|\[[^\[\]]*\])*\])*"
_TITLE = r"(?:\s+(?:\"[^\"]*\"|'[^']*'))?"
_LINK = re.compile(
    rf"(?P<bang>!?)(?<!\\)\[(?P<text>{_NESTED})\]"
    rf"(?:\(\s*(?:<(?P<angle>[^>\n]*)>|(?P<inline>[^)\s]*)){_TITLE}\s*\)|\s?\[(?P<ref>[^\]]*)\])?"
    r"(?P<attributes>\{:?[^}\n]*\})?"
)
_DEFINITION = re.compile(
    rf"^ *\[(?P<id>[^\]^][^\]]*)\]:\s*<?(?P<href>capture:[^>]*?)>?{_TITLE}\s*$", re.IGNORECASE
)
_SPACED = re.compile(
    r"\]\(\s*(?P<inline>capture:[^\s)]*[ \t]+(?![\"'\s)])[^)\n]*)\)"
    r"|^ *\[[^\]^][^\]]*\]:\s*(?P<defined>capture:\S*[ \t]+(?![\"'\s]).*)$",
    re.MULTILINE | re.IGNORECASE,
)
_TARGET = re.compile(
    r"^capture:(?P<target>[\w.-]+/[\w.-]+)#(?P<cell>[\w.-]+)"
    r"(?::(?P<key>[^@]+))?(?:@(?P<machine>\w+))?$"
)


def _links(text: str, lines: list[Line], page: str, faults: list[Fault]) -> list[Shown]:
    if "capture:" not in text.lower():
        return []
    faults += _spaced(lines, page)
    definitions, paragraphs = _paragraphs(lines)
    shown: list[Shown] = []
    for paragraph in paragraphs:
        start = paragraph[0].start
        words = text[start : paragraph[-1].start + len(paragraph[-1].text)]
        masked = without_code_spans(words)
        for link, href in _capture_links(masked, definitions):
            number = paragraph[0].number + words.count("\n", 0, link.start())
            quoted = _plain_text(words[link.start("text") : link.end("text")])
            form = link_form(href, quoted, page, number, faults, image=bool(link["bang"]))
            if form is not None:
                shown.append(_placed(form, start + link.start(), start + link.end()))
    return shown


def _spaced(lines: list[Line], page: str) -> Iterator[Fault]:
    """Targets that Markdown ends at their first space, so that no program sees a link."""
    for line in lines:
        for link in _SPACED.finditer(without_code_spans(line.text)):
            href = link["inline"] or link["defined"]
            message = f"'{href}' holds a space; print a name without one, or write <{href}>"
            yield Fault(page, line.number, message)


def _placed(form: Shown, start: int, end: int) -> Shown:
    return Shown(**{**vars(form), "start": start, "end": end})


def _paragraphs(lines: list[Line]) -> tuple[dict[str, str], list[list[Line]]]:
    """Reference definitions by their folded id, and runs of adjoining prose lines."""
    definitions: dict[str, str] = {}
    paragraphs: list[list[Line]] = []
    last = None
    for line in lines:
        definition = _DEFINITION.match(line.text)
        if definition:
            definitions[_folded(definition["id"])] = definition["href"].strip()
        elif line.kind == "prose":
            if last is None or last != line.number - 1:
                paragraphs.append([])
            paragraphs[-1].append(line)
            last = line.number
    return definitions, paragraphs


def _capture_links(masked: str, definitions: dict[str, str]) -> Iterator[tuple[re.Match[str], str]]:
    position = 0
    while link := _LINK.search(masked, position):
        href = link["angle"] or link["inline"]
        if href is None:
            href = definitions.get(_folded(link["ref"] or link["text"]), "")
        if is_capture(href):
            yield link, href
            position = link.end()
        else:
            position = link.start() + 1  # an ordinary bracket may hold a quote


def is_capture(href: str) -> bool:
    """Whether a link is meant for a run; like every scheme, in letters of either case."""
    return href.lower().startswith("capture:")


def link_text(link: str) -> str:
    """The Markdown between the brackets of a link."""
    found = _LINK.match(without_code_spans(link))
    return link[found.start("text") : found.end("text")] if found else ""


def is_definition(line: str) -> bool:
    """Whether a line defines the target of reference links as a `capture:` address."""
    return _DEFINITION.match(line) is not None


def link_form(
    href: str, text: str, page: str, line: int, faults: list[Fault], image: bool = False
) -> Shown | None:
    """The form that a `capture:` link is, or None and one fault more."""
    parts = _TARGET.match(href)
    wrong = _wrong_link(href, parts, text, image)
    if wrong:
        faults.append(Fault(page, line, wrong))
        return None
    assert parts is not None
    return Shown(
        page,
        line,
        "value" if parts["key"] else "quote",
        parts["target"],
        parts["cell"],
        key=(parts["key"] or "").strip(),
        machine=parts["machine"] or "",
        text=text,
    )


def _wrong_link(href: str, parts: re.Match[str] | None, text: str, image: bool) -> str:
    if not href.startswith("capture:"):
        return f"'{href}' has to begin with `capture:` in small letters"
    if image:
        return f"'{href}' is the target of an image; show a plot with ::: run"
    if parts is None:
        return f"'{href}' is not capture:lesson/example#cell, with :key for a value, @gpu or @cpu"
    if parts["machine"] not in (None, "gpu", "cpu"):
        return f"'{href}' names a machine '{parts['machine']}'; there are gpu and cpu"
    if parts["key"] and text:
        return f"'{href}' pulls a value, so its text is put in; write [](…) instead of [{text}](…)"
    if not parts["key"] and not text:
        return f"'{href}' quotes no words; write [words](…), or add :key to pull a value"
    return ""


def _folded(reference: str) -> str:
    return " ".join(reference.split()).lower()


def without_code_spans(text: str) -> str:
    """The text with the inside of code spans blanked, so that offsets stay."""
    return _CODE_SPAN.sub(lambda span: "\0" * len(span.group()), text)


def _plain_text(markdown: str) -> str:
    """The words a reader sees in a link's text."""
    pieces = []
    position = 0
    for span in _CODE_SPAN.finditer(markdown):
        pieces += [_without_marks(markdown[position : span.start()]), span.group(2).strip()]
        position = span.end()
    pieces.append(_without_marks(markdown[position:]))
    return " ".join("".join(pieces).split())


def _without_marks(text: str) -> str:
    text = re.sub(r"(?<!\\)(\*\*|\*|(?<!\w)_{1,2}|_{1,2}(?!\w))", "", text)
    return html.unescape(re.sub(r"\\([\\`*_{}\[\]()>#+.!-])", r"\1", text))
