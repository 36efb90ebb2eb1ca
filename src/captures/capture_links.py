"""The `capture:` links of a page, inline or by reference: quotes and pulled values."""

import html
import re
from collections.abc import Iterator
from dataclasses import replace

from captures.code_spans import CODE_SPAN, without_code_spans
from captures.fault import Fault
from captures.lines import Line
from captures.shown import Shown

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


def capture_links(text: str, lines: list[Line], page: str, faults: list[Fault]) -> list[Shown]:
    """The quotes and values in the prose `lines` of a `text`, and a fault for each wrong one."""
    if "capture:" not in text.lower():
        return []
    faults += _spaced(lines, page)
    definitions, paragraphs = _paragraphs(lines)
    shown: list[Shown] = []
    for paragraph in paragraphs:
        start = paragraph[0].start
        words = text[start : paragraph[-1].start + len(paragraph[-1].text)]
        masked = without_code_spans(words)
        for link, href in _links_in(masked, definitions):
            number = paragraph[0].number + words.count("\n", 0, link.start())
            quoted = _plain_text(words[link.start("text") : link.end("text")])
            form = link_form(href, quoted, page, number, faults, image=bool(link["bang"]))
            if form is not None:
                begin, end = start + link.start(), start + link.end()
                shown.append(replace(form, start=begin, end=end))
    return shown


def _spaced(lines: list[Line], page: str) -> Iterator[Fault]:
    """Targets that Markdown ends at their first space, so that no program sees a link."""
    for line in lines:
        for link in _SPACED.finditer(without_code_spans(line.text)):
            href = link["inline"] or link["defined"]
            message = f"'{href}' holds a space; print a name without one, or write <{href}>"
            yield Fault(page, line.number, message)


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


def _links_in(masked: str, definitions: dict[str, str]) -> Iterator[tuple[re.Match[str], str]]:
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


def _plain_text(markdown: str) -> str:
    """The words a reader sees in a link's text."""
    pieces = []
    position = 0
    for span in CODE_SPAN.finditer(markdown):
        pieces += [_without_marks(markdown[position : span.start()]), span.group(2).strip()]
        position = span.end()
    pieces.append(_without_marks(markdown[position:]))
    return " ".join("".join(pieces).split())


def _without_marks(text: str) -> str:
    text = re.sub(r"(?<!\\)(\*\*|\*|(?<!\w)_{1,2}|_{1,2}(?!\w))", "", text)
    return html.unescape(re.sub(r"\\([\\`*_{}\[\]()>#+.!-])", r"\1", text))
