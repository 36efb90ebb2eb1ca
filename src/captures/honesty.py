"""What can be seen without running a script about whether its prints are earned."""

import ast
import re
from collections.abc import Iterator

from captures.fault import Fault
from captures.script import Cell, Script, parse

# A line that announces what follows and states nothing itself: `bf16:`, `# sums`, `== sums ==`,
# a rule, or the head of a table, whose columns stand two spaces apart and hold no digit.
_HEADING = re.compile(r".*:|[#|].*|[=+-]{2,}.*|\D*\S(?: {2,}|\t| \| )\D*")

# What text can be computed from and still be literal.
_LITERAL = (
    ast.Constant,
    ast.JoinedStr,
    ast.FormattedValue,
    ast.BinOp,
    ast.UnaryOp,
    ast.operator,
    ast.unaryop,
    ast.expr_context,
    ast.Tuple,
    ast.List,
    ast.keyword,
)


def unguarded_errors(script: Script) -> Iterator[Fault]:
    """Each ``try`` whose handler prints the error but which passes when none is raised."""
    for cell, node in _tries(script):
        prints = any(map(_prints, node.handlers))
        if prints and not any(isinstance(inner, ast.Raise) for inner in node.orelse):
            yield Fault(
                script.project.relative(script.path),
                cell.first_line + node.lineno - 1,
                f"the `try` in cell `{cell.name}` prints an error but passes where none is "
                "raised; add `else: raise AssertionError(...)`",
            )


def dishonest_prints(script: Script) -> Iterator[Fault]:
    """Each unconditional ``print`` of nothing but literals that reads like a result."""
    for cell in script.cells:
        for call in _unconditional_prints(parse(cell.source)):
            text = None if cell.measured else _literal_text(call)
            if text and text.strip() and not _is_heading(text):
                yield Fault(
                    script.project.relative(script.path),
                    cell.first_line + call.lineno - 1,
                    f"prints the literal {text!r} as if it were a result; print what was computed",
                )


def _tries(script: Script) -> Iterator[tuple[Cell, ast.Try | ast.TryStar]]:
    for cell in script.cells:
        nodes = ast.walk(parse(cell.source)) if "try" in cell.source else ()
        yield from ((cell, node) for node in nodes if isinstance(node, ast.Try | ast.TryStar))


def _prints(node: ast.AST) -> bool:
    return any(_is_print(inner) for inner in ast.walk(node))


def _is_print(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    )


def _unconditional_prints(node: ast.AST) -> Iterator[ast.Call]:
    """Prints that no ``if`` or ``match`` decides upon: a branch taken is a result."""
    if isinstance(node, ast.Call) and _is_print(node):
        yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.If | ast.Match):
            yield from _unconditional_prints(child)


def _literal_text(call: ast.Call) -> str | None:
    """What the call prints if that can be told from its text alone, else None."""
    parts = [*call.args, *call.keywords]
    if not all(isinstance(node, _LITERAL) for part in parts for node in ast.walk(part)):
        return None
    if any(isinstance(node, ast.Pow | ast.LShift) for node in ast.walk(call)):
        return ast.unparse(call)  # may be too large to compute, and is no heading
    try:
        return " ".join(str(_value(argument)) for argument in call.args)
    except Exception:  # it would raise, and then prints nothing
        return None


def _value(expression: ast.expr) -> object:
    code = compile(ast.fix_missing_locations(ast.Expression(expression)), "<literal>", "eval")
    return eval(code, {"__builtins__": {}})


def _is_heading(text: str) -> bool:
    return all(
        not line.strip() or _HEADING.fullmatch(line.strip()) for line in text.strip().split("\n")
    )
