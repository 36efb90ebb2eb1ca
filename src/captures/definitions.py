"""The top-level statements of a module: what each binds, what it uses, and its own lines."""

import ast
import symtable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path


@dataclass(frozen=True)
class Definition:
    """One top-level statement, with its decorators and the comment that stands right above."""

    node: ast.stmt
    names: tuple[str, ...]
    uses: frozenset[str]
    first: int
    last: int
    text: str

    @property
    def is_import(self) -> bool:
        return isinstance(self.node, ast.Import | ast.ImportFrom)


@dataclass(frozen=True)
class Module:
    path: Path
    text: str
    definitions: tuple[Definition, ...]

    @cached_property
    def by_name(self) -> dict[str, tuple[Definition, ...]]:
        """Every statement that binds a name; several where it is bound again."""
        found: dict[str, tuple[Definition, ...]] = {}
        for definition in self.definitions:
            for name in definition.names:
                found[name] = (*found.get(name, ()), definition)
        return found

    def find(self, symbol: str) -> tuple[int, int] | None:
        """First and last line of `name` or `Class.method`."""
        name, _, rest = symbol.partition(".")
        if name not in self.by_name:
            return None
        definition = self.by_name[name][-1]
        if not rest:
            return definition.first, definition.last
        lines = self.text.split("\n")
        node: ast.stmt | None = definition.node
        for part in rest.split("."):
            members = node.body if isinstance(node, ast.ClassDef) else []
            node = next((member for member in members if part in bound_names(member)), None)
        return (_first_line(node, lines), _last_line(node)) if node else None

    def symbols(self) -> list[str]:
        """What can be asked for by name."""
        members = [
            f"{definition.node.name}.{name}"
            for definition in self.definitions
            if isinstance(definition.node, ast.ClassDef)
            for member in definition.node.body
            for name in bound_names(member)
        ]
        return [*self.by_name, *members]


def read_module(path: Path) -> Module:
    """The module at `path`; raises `SyntaxError` or `FileNotFoundError`."""
    stat = path.stat()
    return _read_module(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(maxsize=512)
def _read_module(path: Path, _mtime: int, _size: int) -> Module:
    return parse_module(path, path.read_text(encoding="utf-8"))


def parse_module(path: Path, text: str) -> Module:
    lines = text.split("\n")
    return Module(path, text, tuple(_definition(node, lines) for node in ast.parse(text).body))


def _definition(node: ast.stmt, lines: list[str]) -> Definition:
    first, last = _first_line(node, lines), _last_line(node)
    text = "\n".join(lines[first - 1 : last])
    return Definition(node, bound_names(node), used_names(text), first, last, text)


def _first_line(node: ast.stmt, lines: list[str]) -> int:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def bound_names(node: ast.AST) -> tuple[str, ...]:
    """The names that a statement binds in the scope it stands in, compound statements included."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return (node.name,)
    if isinstance(node, ast.Import | ast.ImportFrom):
        return tuple(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    found: list[str] = []
    if isinstance(node, ast.ExceptHandler) and node.name:
        found.append(node.name)
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        found.append(node.id)
    if not isinstance(node, ast.Lambda | ast.ListComp | ast.SetComp | ast.DictComp):
        for child in ast.iter_child_nodes(node):
            found += bound_names(child)
    return tuple(dict.fromkeys(found))


def used_names(text: str) -> frozenset[str]:
    """The names that a top-level statement reads from its module, however deep inside."""
    found = _globals_of(symtable.symtable(text, "<definition>", "exec"))
    for node in ast.walk(ast.parse(text)):
        for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                found |= used_names(annotation.value)
    return frozenset(found)


def _globals_of(table: symtable.SymbolTable) -> set[str]:
    is_module = table.get_type() == "module"
    found = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and (is_module or symbol.is_global())
    }
    return found.union(*map(_globals_of, table.get_children()))
