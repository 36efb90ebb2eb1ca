"""What an example needs of the first-party modules, and only that.

The names that its cells use are followed through `from module import name` to the top-level
statements that bind them, and on to the names that those use. What would mean something else in
one file is a fault.
"""

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from captures.definitions import (
    Definition,
    Module,
    attributes,
    changed,
    parse_module,
    without_imports,
)
from captures.fault import Fault
from captures.origins import Import, Origin, Origins, bound_name
from captures.project import Project
from captures.script import Cell, Script

# What a reader may be asked to install: torch and triton, and what plots are drawn with.
ALLOWED = ("matplotlib", "numpy", "torch", "triton")


@dataclass(frozen=True)
class _Ask:
    """A name that cells import and use."""

    node: Definition
    name: str
    users: tuple[Definition, ...]
    line: int


@dataclass
class Kept:
    """Where following the same names led before, while the modules read stay the same."""

    imports: frozenset[Import]
    faults: tuple[Fault, ...]
    taken: dict[Path, dict[int, Definition]]
    objects: dict[Path, set[str]]
    asked: dict[Origin, str]
    order: list[Path]
    read: dict[Path, Module]
    candidates: frozenset[str] = frozenset()  # every name that a definition may get
    written: dict[frozenset[str], tuple[tuple[str, tuple[Definition, ...]], ...]] = field(
        default_factory=dict
    )


# A build writes out the same modules for every cell of every example that imports them.
_KEPT: dict[tuple, Kept] = {}


@dataclass
class Needs:
    """What the cells of one example need, found as they are added."""

    project: Project
    script: Script
    imports: set[Import] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    taken: dict[Path, dict[int, Definition]] = field(default_factory=dict)  # by first line
    objects: dict[Path, set[str]] = field(default_factory=dict)  # modules used as objects
    asked: dict[Origin, str] = field(default_factory=dict)  # by the cells, under this name
    line: int = 0  # of the import in the script that is being followed
    kept: Kept | None = None
    order: list[Path] = field(default_factory=list)
    origins: Origins = field(init=False)

    def __post_init__(self) -> None:
        self.origins = Origins(self.project, self.script.path, self.fault)

    def fault(self, message: str) -> None:
        self.faults.append(Fault(self.project.relative(self.script.path), self.line, message))

    def add_cells(self, cells: Sequence[Cell]) -> list[str]:
        """Follow the imports that the cells use; returns the cells without any imports."""
        parsed = [parse_module(self.script.path, cell.source) for cell in cells]
        statements = [definition for each in parsed for definition in each.definitions]
        asks: list[_Ask] = []
        for cell, each in zip(cells, parsed, strict=True):
            for definition in each.definitions:
                self.line = cell.first_line + definition.node.lineno - 1
                if not definition.is_import:
                    self._require_no_hidden_import(self.script.path, definition)
                    continue
                for name in definition.names:
                    users = [user for user in statements if name in user.uses]
                    if users or name == "annotations":
                        asks.append(_Ask(definition, name, tuple(users), self.line))
        self._take_asked(asks)
        return [without_imports(each) for each in parsed]

    def _take_asked(self, asks: Sequence[_Ask]) -> None:
        """Follow what is asked for, or recall where it led when another example asked for it."""
        own = [ask for ask in asks if self._is_own(ask)]
        for ask in asks:
            if ask not in own:
                self._take_asked_for(ask)
        key = (self.project.root, self.script.path.parent, *sorted(map(self._key, own)))
        kept = _KEPT.get(key)
        if kept is not None and self._holds(kept):
            self._recall(kept)
            return
        others, self.imports = self.imports, set()
        for ask in own:
            origin = self._take_asked_for(ask)
            if origin and self.asked.setdefault(origin, ask.name) != ask.name:
                self.fault(f"`{ask.name}` is also imported as `{self.asked[origin]}`")
        self._take_effects()
        self.order = self._order()
        self._keep(key)
        self.imports |= others

    def _take_asked_for(self, ask: _Ask) -> Origin | None:
        self.line = ask.line
        return self._follow(self.script.path, ask.node, ask.name, ask.users)

    def _holds(self, kept: Kept) -> bool:
        return all(self.origins.module(path) is module for path, module in kept.read.items())

    def _recall(self, kept: Kept) -> None:
        self.imports |= kept.imports
        self.faults += kept.faults
        self.taken, self.objects = kept.taken, kept.objects
        self.asked, self.order = kept.asked, kept.order
        self.kept = kept

    def _keep(self, key: tuple) -> None:
        """For others that ask for the same; but a fault of this script is none of theirs."""
        where = self.project.relative(self.script.path)
        if any(fault.path == where for fault in self.faults):
            return
        self.kept = _KEPT[key] = Kept(
            frozenset(self.imports),
            tuple(self.faults),
            self.taken,
            self.objects,
            self.asked,
            self.order,
            {path: self.origins.module(path) for path in self.origins.read},
        )

    def _is_own(self, ask: _Ask) -> bool:
        statement = ask.node.node
        if not isinstance(statement, ast.ImportFrom):
            return False
        return (
            self.origins.file(self.origins.imported_from(self.script.path, statement)) is not None
        )

    def _key(self, ask: _Ask) -> tuple[str, str, str]:
        """What following a name depends on: its import, and what is read from a module."""
        statement = ask.node.node
        assert isinstance(statement, ast.ImportFrom)
        name = next(alias.name for alias in statement.names if bound_name(alias) == ask.name)
        wanted = ""
        if self.origins.file(f"{statement.module}.{name}") is not None:
            read = [attributes(user.node, ask.name) for user in ask.users]
            wanted = "all" if None in read else str(sorted(set().union(*filter(None, read))))
        return f"{statement.level} {statement.module} {name}", ask.name, wanted

    def _take_effects(self) -> None:
        """Statements that change what is taken: `TABLE.update(…)`, `f.x = …`, `@register`."""
        size = -1
        while size != (size := sum(map(len, self.taken.values()))):
            for path in list(self.taken):
                names = {name for d in self.taken[path].values() for name in d.names}
                for definition in self.origins.module(path).definitions:
                    if definition.first not in self.taken[path] and names & changed(definition):
                        self._take(path, definition)

    def _follow(
        self, path: Path, node: Definition, bound: str, users: Sequence[Definition]
    ) -> Origin | None:
        """Take what an import in the file `path` binds; None for another package's."""
        origin = self.origins.of(path, node, bound)
        if isinstance(origin, Import):
            self._add_import(origin, path)
            return None
        if origin is None:
            return None
        if not origin.name:
            self._take_object(origin.path, users, bound)
            return origin
        for definition in self.origins.module(origin.path).by_name[origin.name]:
            if not definition.is_import:
                self._take(origin.path, definition)
        return origin

    def _add_import(self, wanted: Import, path: Path) -> None:
        if self.origins.file(wanted.package) is not None:
            self.fault(
                f"`import {wanted.module}` in {self.project.relative(path)} hides what it uses; "
                f"write `from {wanted.module} import name`"
            )
        elif wanted.package not in (*ALLOWED, *sys.stdlib_module_names):
            self.fault(f"imports {wanted.package}; a reader has only {', '.join(ALLOWED)}")
        else:
            self.imports.add(wanted)

    def _take(self, path: Path, definition: Definition) -> None:
        taken = self.taken.setdefault(path, {})
        if definition.first in taken:
            return
        taken[definition.first] = definition
        self._require_no_hidden_import(path, definition)
        module = self.origins.module(path)
        for name in sorted(definition.uses.intersection(module.by_name)):
            for other in module.by_name[name]:
                if other.is_import:
                    self._follow(path, other, name, [definition])
                else:
                    self._take(path, other)
        for future in module.by_name.get("annotations", ()):
            if isinstance(future.node, ast.ImportFrom) and future.node.module == "__future__":
                self.imports.add(Import("__future__", "annotations", "annotations"))

    def _take_object(self, path: Path, users: Sequence[Definition], name: str) -> None:
        """Take of a module what is used as `module.name`, or all if it is handed around."""
        module = self.origins.module(path)
        defined = {d: n for n, ds in module.by_name.items() for d in ds if not d.is_import}
        wanted: set[str] = set()
        for user in users:
            read = attributes(user.node, name)
            wanted |= set(defined.values()) if read is None else read
        for attribute in sorted(wanted):
            if attribute not in module.by_name:
                where = self.project.relative(path)
                self.fault(f"`{name}.{attribute}` is not defined in {where}")
        self.objects.setdefault(path, set()).update(wanted)
        self.taken.setdefault(path, {})
        self.imports.add(Import("types", "SimpleNamespace", "SimpleNamespace"))
        for attribute in sorted(wanted.intersection(module.by_name)):
            for definition in module.by_name[attribute]:
                if definition.is_import:
                    self._follow(path, definition, attribute, [])
                else:
                    self._take(path, definition)

    def _order(self) -> list[Path]:
        """Each module after those that it imports from, as Python executes them."""
        order: dict[Path, None] = {}
        begun: set[Path] = set()

        def visit(path: Path) -> None:
            if path in begun:
                return
            begun.add(path)
            for definition in self.origins.module(path).definitions:
                if isinstance(definition.node, ast.ImportFrom):
                    module = self.origins.imported_from(path, definition.node)
                    names = ["", *(f".{alias.name}" for alias in definition.node.names)]
                    for target in filter(
                        None, (self.origins.file(module + name) for name in names)
                    ):
                        visit(target)
            if path in self.taken:
                order[path] = None

        for path in self.taken:
            visit(path)
        return list(order)

    def _require_no_hidden_import(self, path: Path, definition: Definition) -> None:
        node = definition.node
        if "import" not in definition.text:
            return
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            return
        for child in ast.walk(node):
            if isinstance(child, ast.Import | ast.ImportFrom):
                modules = [alias.name for alias in child.names]
                if isinstance(child, ast.ImportFrom):
                    modules = [child.module or "."]
                if child.__dict__.get("level") or any(map(self.origins.file, modules)):
                    line = self.line if path == self.script.path else child.lineno
                    message = (
                        f"`{ast.unparse(child)}` stands inside another statement, so it cannot "
                        "be written out; move it to the top level"
                    )
                    self.faults.append(Fault(self.project.relative(path), line, message))
