"""Give the module-level names in a statement other names, and leave all its other text alone."""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)

_NAMED = {ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def ", ast.ClassDef: "class "}
_NAMED_NODES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)

Span = tuple[int, int, int, int]  # first line, column, last line, column; columns in bytes


def rename(text: str, names: Mapping[str, str]) -> str:
    """`text` with each module-level name that `names` holds replaced.

    Parameters, local variables, attributes and keywords of the same name are other things.
    """
    return _rename(text, tuple(sorted((old, new) for old, new in names.items() if old != new)))


@lru_cache(maxsize=4096)  # one build writes the same definitions into many files
def _rename(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    names = dict(changes)
    if not names or not re.search("|".join(rf"\b{re.escape(name)}\b" for name in names), text):
        return text
    lines = [line.encode() for line in text.split("\n")]
    spans = sorted(set(_spans(ast.parse(text), frozenset(), names)), reverse=True)
    for (first, start, last, end), old in spans:
        if first == last and lines[first - 1][start:end] == old.encode():
            line = lines[first - 1]
            lines[first - 1] = line[:start] + names[old].encode() + line[end:]
        else:
            _replace_within(lines, (first, start, last, end), old, names[old])
    return b"\n".join(lines).decode()


def _spans(
    node: ast.AST, hidden: frozenset[str], names: Mapping[str, str]
) -> Iterator[tuple[Span, str]]:
    """Where each name stands, `hidden` being the names that enclosing functions bind."""
    if isinstance(node, ast.Name) and node.id in names and node.id not in hidden:
        yield _span(node), node.id
    if isinstance(node, _NAMED_NODES) and node.name in names and node.name not in hidden:
        start = node.col_offset + len(_NAMED[type(node)])
        yield (node.lineno, start, node.lineno, start + len(node.name.encode())), node.name
    if isinstance(node, ast.Global):
        yield from ((_span(node), name) for name in node.names if name in names)
    if isinstance(node, ast.JoinedStr):
        # Before Python 3.12 the places of what stands within an f-string are not to be trusted.
        inside = {
            name for child in ast.iter_child_nodes(node) for _, name in _spans(child, hidden, names)
        }
        yield from ((_span(node), name) for name in inside)
        return
    inner = hidden
    if isinstance(node, _FUNCTIONS):
        inner = hidden | _locals(node)
    elif isinstance(node, _COMPREHENSIONS):
        inner = hidden | {name for each in node.generators for name in _stored(each.target)}
    elif isinstance(node, ast.ClassDef):
        # Names of the class body are attributes; they do not hide anything from the methods.
        own = frozenset(_stored_in(node.body))
        for child in ast.iter_child_nodes(node):
            is_scope = isinstance(child, (*_FUNCTIONS, ast.ClassDef))
            yield from _spans(child, hidden if is_scope else hidden | own, names)
        return
    for field, value in ast.iter_fields(node):
        outside = field in ("decorator_list", "returns", "args")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _spans(child, hidden if outside else inner, names)


def _span(node: ast.expr | ast.stmt) -> Span:
    return (
        node.lineno,
        node.col_offset,
        node.end_lineno or node.lineno,
        node.end_col_offset or node.col_offset,
    )


def _locals(function: ast.AST) -> frozenset[str]:
    """What a function binds: its parameters and whatever its body assigns or defines."""
    assert isinstance(function, _FUNCTIONS)
    parameters = {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    body = [function.body] if isinstance(function, ast.Lambda) else function.body
    declared = {
        name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names
    }
    return frozenset(parameters | set(_stored_in(body)) - declared)


def _stored_in(body: Iterable[ast.AST]) -> Iterator[str]:
    for node in body:
        yield from _stored(node)


def _stored(node: ast.AST) -> Iterator[str]:
    """Names bound in a statement or target, not those inside the functions that it defines."""
    if isinstance(node, _NAMED_NODES):
        yield node.name
        return
    if isinstance(node, ast.Lambda):
        return
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    if isinstance(node, ast.alias):
        yield node.asname or node.name.partition(".")[0]
    if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    for child in ast.iter_child_nodes(node):
        if not isinstance(node, _COMPREHENSIONS) or isinstance(child, ast.NamedExpr):
            yield from _stored(child)


def _replace_within(lines: list[bytes], span: Span, old: str, new: str) -> None:
    """Replace a name in a `global` statement or in the braces of an f-string."""
    first, start, last, end = span
    rows = lines[first - 1 : last]
    before, after = rows[0][:start], rows[-1][end:]
    rows[-1] = rows[-1][:end]
    rows[0] = rows[0][start:]
    text = b"\n".join(rows).decode()
    word = re.compile(rf"(?<![\w.]){re.escape(old)}\b(?!\s*=[^=])")
    code = r".+" if text.startswith("global ") else r"\{[^{}]*\}"
    text = re.sub(code, lambda found: word.sub(new, found.group()), text)
    lines[first - 1 : last] = (before + text.encode() + after).split(b"\n")
