"""The four forms a page can hold, found in its Markdown with the line they stand on.

    ::: run graph_node/invisible#launch             a cell's code and its output
    ::: run rms_norm/cost#plot "What is seen."      the same of a cell that plots
    ::: source gradkernels.gelu:gelu_kernel         a definition of src/ by symbol
    [0.5](capture:accumulation/stall#bf16)          a quote of what a cell printed
    [](capture:ceiling/gelu#bandwidth:gbps)         the value a cell printed as `gbps: ...`

A `capture:` target may end in `@gpu` or `@cpu`. Links may be inline or by reference.
Nothing is a form inside a fence, an indented code block, a code span or an HTML comment.
"""

import re
from functools import lru_cache
from pathlib import Path

from captures.capture_links import capture_links
from captures.code_spans import without_code_spans
from captures.fault import Fault, Faults
from captures.lines import Line, front_matter_lines, scan
from captures.project import Project, read_text
from captures.shown import Shown

VERBS = {"run": "lesson/example#cell", "source": "package.module:symbol"}


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
    shown += capture_links(text, prose, page, faults)
    return sorted(shown, key=lambda form: form.start), faults


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
