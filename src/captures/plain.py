"""Material's dialect as plain Markdown: admonitions become quotations, tabs become titles.

Where a link of the page leads to an id, the id stays, as an empty HTML anchor.

What is left is read alike by every Markdown program, notebooks among them.
"""

import re
from collections.abc import Iterable

_OPENER = re.compile(
    r"^(?P<indent> *)(?P<mark>!!!|\?\?\?\+?|===[!+]*) *"
    r"(?P<kind>[\w -]*?) *(?:\"(?P<title>.*)\")? *$"
)
_FENCE = re.compile(r"^[> ]*(?P<fence>`{3,}|~{3,})(?P<info>.*)$")
_FENCE_LANGUAGE = re.compile(r"^\s*\{\s*\.(?P<language>[\w+-]+)[^}]*\}\s*$")
_BLOCK_ATTRIBUTES = re.compile(r"^[> ]*\{:[^}]*\}\s*$")
_CODE_SPAN = re.compile(r"(`+[^`]+`+)")
# Directly after a link, an image, emphasis or a code span, or at the end of a heading.
_ATTRIBUTES = re.compile(r"(?:(?<=[\])*])|^)\{:?\s*[.#\w][^}]*\}|\s+\{:?\s*[.#][^}]*\}\s*$")


_ID = re.compile(r"#([\w-]+)")
_LINKED = re.compile(r"\]\(#([\w-]+)\)")


def plain(lines: Iterable[str]) -> list[str]:
    """The lines without what only Material's extensions read."""
    lines = list(lines)
    return _plain(lines, frozenset(_LINKED.findall("\n".join(lines))))


def _plain(lines: list[str], linked: frozenset[str]) -> list[str]:
    result: list[str] = []
    index = 0
    while index < len(lines):
        fence = _FENCE.match(lines[index])
        opener = _OPENER.match(lines[index])
        if fence:
            end = _end_of_fence(lines, index, fence["fence"])
            result += [_plain_fence(lines[index], fence), *lines[index + 1 : end]]
        elif opener and (opener["kind"] or opener["title"]):
            end = _end_of_content(lines, index, len(opener["indent"]) + 4)
            result += _container(opener, lines[index + 1 : end], linked)
        else:
            end = index + 1
            if _BLOCK_ATTRIBUTES.match(lines[index]):
                result += filter(None, [_anchors(lines[index], linked)])
            else:
                result.append(_without_attributes(lines[index], linked))
        index = end
    return result


def _container(opener: re.Match[str], content: list[str], linked: frozenset[str]) -> list[str]:
    indent = opener["indent"]
    depth = len(indent) + 4
    inner = _plain([line[depth:] for line in content], linked)
    while inner and not inner[-1]:
        inner.pop()
    title = opener["title"]
    if opener["mark"].startswith("==="):
        lines = [f"**{title}**", *([""] if inner and inner[0] else []), *inner]
    else:
        words = opener["kind"].split()[0].capitalize() if title is None else title
        inner = ([f"**{words}**", ""] if words else []) + inner[not (inner and inner[0]) :]
        lines = [f"> {line}".rstrip() for line in inner]
    return [*((indent + line).rstrip() for line in lines), ""]


def _without_attributes(line: str, linked: frozenset[str]) -> str:
    pieces = _CODE_SPAN.split(line)
    pieces[::2] = [
        _ATTRIBUTES.sub(lambda found: _anchors(found[0], linked), piece) for piece in pieces[::2]
    ]
    return "".join(pieces)


def _anchors(attributes: str, linked: frozenset[str]) -> str:
    return "".join(f'<a id="{name}"></a>' for name in _ID.findall(attributes) if name in linked)


def _plain_fence(line: str, fence: re.Match[str]) -> str:
    attributes = _FENCE_LANGUAGE.match(fence["info"])
    language = attributes["language"] if attributes else fence["info"].strip().partition(" ")[0]
    return line[: fence.end("fence")] + language


def _end_of_fence(lines: list[str], index: int, fence: str) -> int:
    closing = re.compile(rf"^[> ]*{fence}\s*$")
    for end in range(index + 1, len(lines)):
        if closing.match(lines[end]):
            return end + 1
    return len(lines)


def _end_of_content(lines: list[str], index: int, depth: int) -> int:
    end = index + 1
    for number in range(index + 1, len(lines)):
        line = lines[number]
        if line.strip() and len(line) - len(line.lstrip(" ")) < depth:
            break
        end = number + 1
    return end
