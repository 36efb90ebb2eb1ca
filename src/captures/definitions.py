"""The top-level statements of a module: what each binds, what it uses, and its own lines."""

import ast
import re
import symtable
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

from captures.fault import Fault, Faults
from captures.script import parse


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
        node: ast.stmt | None = definition.node
        for part in rest.split("."):
            node = _members(node).get(part)
        return (_first_line(node, self.text.split("\n")), _last_line(node)) if node else None

    def symbols(self) -> list[str]:
        """What can be asked for by name."""
        members = [
            f"{name}.{member}"
            for name, definitions in self.by_name.items()
            for member in _members(definitions[-1].node)
        ]
        return [*self.by_name, *members]


def read_module(path: Path, where: str) -> Module:
    """The module at `path`, called `where` in the `Faults` raised if it does not parse."""
    stat = path.stat()
    try:
        return _read_module(path, stat.st_mtime_ns, stat.st_size)
    except SyntaxError as error:
        fault = Fault(where, error.lineno or 0, f"does not parse: {error.msg}")
        raise Faults([fault]) from None


@lru_cache(maxsize=512)
def _read_module(path: Path, _mtime: int, _size: int) -> Module:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise SyntaxError(f"it is not UTF-8: {error.reason}") from None
    return parse_module(path, text)


@lru_cache(maxsize=4096)
def parse_module(path: Path, text: str) -> Module:
    lines = text.split("\n")
    return Module(path, text, tuple(_definition(node, lines) for node in parse(text).body))


def _definition(node: ast.stmt, lines: list[str]) -> Definition:
    first, last = _first_line(node, lines), _last_line(node)
    text = "\n".join(lines[first - 1 : last])
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = tuple(alias.asname or alias.name.partition(".")[0] for alias in node.names)
        return Definition(node, names, frozenset(), first, last, text)
    table = symtable.symtable(text, "<definition>", "exec")
    names = tuple(symbol.get_name() for symbol in table.get_symbols() if _is_bound(symbol))
    uses = _globals_of(table)
    if _STRING_ANNOTATION.search(text):
        uses |= _annotated(node)
    return Definition(node, names, frozenset(uses), first, last, text)


def _first_line(node: ast.stmt, lines: list[str]) -> int:
    decorators = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(decorator.lineno for decorator in decorators)])
    while first > 1 and lines[first - 2].lstrip().startswith("#"):
        first -= 1
    return first


def _last_line(node: ast.stmt) -> int:
    return node.end_lineno or node.lineno


def _members(node: ast.stmt | None) -> dict[str, ast.stmt]:
    """What a class body defines, by name."""
    found: dict[str, ast.stmt] = {}
    for member in node.body if isinstance(node, ast.ClassDef) else []:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found[member.name] = member
        targets = member.targets if isinstance(member, ast.Assign) else [member]
        for target in targets:
            name = target.target if isinstance(target, ast.AnnAssign) else target
            if isinstance(name, ast.Name):
                found[name.id] = member
    return found


def _is_bound(symbol: symtable.Symbol) -> bool:
    return symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace()


def _globals_of(table: symtable.SymbolTable) -> set[str]:
    """The names that a statement reads from its module, however deep inside."""
    if isinstance(table, symtable.Function):
        found = set(table.get_globals())
    else:
        is_module = table.get_type() == "module"
        found = {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (is_module or symbol.is_global())
        }
    return found.union(*map(_globals_of, table.get_children()))


_STRING_ANNOTATION = re.compile(r"""(?:->|:)\s*["']""")


def _annotated(node: ast.stmt) -> set[str]:
    """Names in annotations that are written as strings."""
    found: set[str] = set()
    for child in ast.walk(node):
        for annotation in (getattr(child, "annotation", None), getattr(child, "returns", None)):
            if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
                found |= _globals_of(symtable.symtable(annotation.value, "<annotation>", "eval"))
    return found


def attributes(node: ast.AST, name: str) -> set[str] | None:
    """The attributes that are read from the object called `name`; None if it is used otherwise."""
    found: set[str] = set()
    parents = {id(n.value): n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}
    for child in ast.walk(node):
        if isinstance(child, ast.Name) and child.id == name:
            if id(child) not in parents:
                return None
            found.add(parents[id(child)])
    return found


def changed(definition: Definition) -> frozenset[str]:
    """The names whose objects a statement changes or registers with."""
    node = definition.node
    targets: Sequence[ast.expr] = ()
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        targets = [node.value.func]
    elif isinstance(node, ast.Assign):
        targets = [t for t in node.targets if not isinstance(t, ast.Name)]
    elif isinstance(node, ast.AugAssign):
        targets = [node.target]
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        targets = node.decorator_list
    return frozenset(filter(None, map(_root, targets)))


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Call):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def without_imports(module: Module) -> str:
    """The module's text without its top-level imports."""
    lines = module.text.split("\n")
    for definition in reversed(module.definitions):
        if definition.is_import:
            del lines[definition.first - 1 : definition.last]
    return "\n".join(lines).strip("\n")
