"""Code spelt so that comments, docstrings and formatting do not count.

It is taken from the syntax tree, and says what the tree means rather than how a Python version
spells it, so that 3.11 to 3.13 agree.
"""

import ast
from functools import cache

from captures.script import parse


def canonical(source: str) -> str:
    """The source's meaning, spelt alike by every supported Python."""
    return spell(parse(source))


_HAS_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def spell(node: object) -> str:
    """A syntax tree, or a part of one, as text."""
    if isinstance(node, ast.AST):
        if isinstance(node, ast.Constant):
            return f"{type(node.value).__name__} {node.value!r}"
        if isinstance(node, ast.JoinedStr):
            return f"JoinedStr({spell(_parts(node))})"
        kept = []
        for name in _fields(node._fields):
            meaning = _meaning(node, name)
            # Fields that a newer Python added are empty where the syntax is old.
            if meaning is not None and meaning != []:
                kept.append(f"{name}={spell(meaning)}")
        return f"{type(node).__name__}({', '.join(kept)})"
    if isinstance(node, list):
        return f"[{', '.join(map(spell, node))}]"
    return repr(node)


@cache
def _fields(names: tuple[str, ...]) -> list[str]:
    return sorted({*names} - {"type_comment", "type_ignores", "ctx"})


def _meaning(node: ast.AST, name: str) -> object:
    value = getattr(node, name, None)
    if name == "body" and isinstance(node, _HAS_DOCSTRING) and _begins_with_text(node.body):
        return node.body[1:]
    if name == "format_spec" and isinstance(value, ast.JoinedStr) and not _parts(value):
        return None
    return value


def _begins_with_text(body: list[ast.stmt]) -> bool:
    return (
        bool(body)
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )


def _parts(string: ast.JoinedStr) -> list[ast.expr]:
    """The parts of an f-string: adjacent texts joined, empty ones dropped."""
    parts: list[ast.expr] = []
    for value in string.values:
        last = parts[-1] if parts else None
        if isinstance(value, ast.Constant) and isinstance(last, ast.Constant):
            parts[-1] = ast.Constant("".join(map(str, (last.value, value.value))))
        elif not (isinstance(value, ast.Constant) and value.value == ""):
            parts.append(value)
    return parts
