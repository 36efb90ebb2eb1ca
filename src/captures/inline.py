"""What of the first-party modules an example needs, and only that.

The names that its cells use are followed through `from module import name` to the top-level
statements that bind them, and on to the names that those use. Whatever would make one file mean
something else than the modules did (two things of one name, a name that a cell binds anew, an
import that hides what it brings) is a fault.
"""

import ast
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from captures.definitions import Definition, Module, parse_module, read_module
from captures.fault import Fault, Faults
from captures.project import Project
from captures.script import Cell, Script

# What a reader may be asked to install: torch and triton, and what plots are drawn with.
ALLOWED = ("matplotlib", "numpy", "torch", "triton")


@dataclass(frozen=True, order=True)
class Import:
    """A name bound by an import of another package; `name` is empty for `import module`."""

    module: str
    name: str
    bound: str

    @property
    def package(self) -> str:
        return self.module.partition(".")[0]

    @property
    def target(self) -> str:
        """What the bound name stands for."""
        if self.name:
            return f"{self.module}.{self.name}"
        return self.package if self.bound == self.package else self.module


@dataclass(frozen=True)
class Inlined:
    """Imports, the definitions taken from each module, and each cell without its imports."""

    imports: tuple[Import, ...]
    modules: tuple[tuple[str, tuple[Definition, ...]], ...]
    cells: tuple[str, ...]

    @property
    def packages(self) -> list[str]:
        """What has to be installed."""
        return sorted({each.package for each in self.imports} - sys.stdlib_module_names)


def inline(project: Project, script: Script, cells: Sequence[Cell]) -> Inlined:
    """The parts of one file that does what `cells` do; raises `Faults`."""
    inliner = _Inliner(project, script)
    codes = inliner.add_cells(cells)
    modules = inliner.modules()
    inliner.require_distinct_names(cells)
    if inliner.faults:
        raise Faults(inliner.faults)
    return Inlined(tuple(sorted(inliner.imports)), modules, tuple(codes))


@dataclass
class _Inliner:
    project: Project
    script: Script
    imports: set[Import] = field(default_factory=set)
    faults: list[Fault] = field(default_factory=list)
    taken: dict[Path, dict[int, Definition]] = field(default_factory=dict)  # by first line
    line: int = 0  # of the import in the script that is being followed

    def fault(self, message: str) -> None:
        self.faults.append(Fault(self.project.relative(self.script.path), self.line, message))

    # --- cells ---

    def add_cells(self, cells: Sequence[Cell]) -> list[str]:
        parsed = [parse_module(self.script.path, cell.source) for cell in cells]
        used = {name for each in parsed for d in each.definitions for name in d.uses}
        for cell, each in zip(cells, parsed, strict=True):
            for definition in each.definitions:
                self.line = cell.first_line + definition.node.lineno - 1
                if not definition.is_import:
                    self._require_no_hidden_import(definition)
                    continue
                for name in definition.names:
                    if name in used or name == "annotations":
                        self._follow(definition.node, name, self.script.path)
        return [_without_imports(each) for each in parsed]

    def require_distinct_names(self, cells: Sequence[Cell]) -> None:
        """Faults for every name that one file would give to two things."""
        owners: dict[str, str] = {}
        for path in self.taken:
            origin = self.project.relative(path)
            for definition in self.taken[path].values():
                for name in definition.names:
                    place = f"{origin}:{definition.first}"
                    other = owners.setdefault(name, place)
                    if not other.startswith(f"{origin}:"):
                        self.fault(f"`{name}` is defined in {other} and {place}; rename one")
        for each in self.imports:
            other = owners.setdefault(each.bound, each.target)
            if other != each.target:
                self.fault(f"`{each.bound}` is both {other} and {each.target}; rename one")
        self._require_untouched(cells)

    def _require_untouched(self, cells: Sequence[Cell]) -> None:
        """A cell may not bind a name that the definitions it stands after still read."""
        read = {
            name: f"{self.project.relative(path)}:{definition.first}"
            for path, taken in self.taken.items()
            for definition in taken.values()
            for name in definition.uses
        }
        for cell in cells:
            for definition in parse_module(self.script.path, cell.source).definitions:
                if definition.is_import:
                    continue
                self.line = cell.first_line + definition.node.lineno - 1
                for name in definition.names:
                    if name in read:
                        self.fault(f"binds `{name}` anew, which {read[name]} reads; rename it here")

    # --- modules ---

    def modules(self) -> tuple[tuple[str, tuple[Definition, ...]], ...]:
        self._take_effects()
        return tuple(
            (
                self.project.relative(path),
                tuple(self.taken[path][line] for line in sorted(self.taken[path])),
            )
            for path in self._order()
        )

    def _order(self) -> list[Path]:
        """Each module after those that it imports from, as Python executes them."""
        order: dict[Path, None] = {}
        open_: set[Path] = set()

        def visit(path: Path) -> None:
            if path in open_:
                return
            open_.add(path)
            for definition in self._module(path).definitions:
                if isinstance(definition.node, ast.ImportFrom):
                    target = self._find(_absolute(definition.node, self._dotted(path)))
                    if target is not None:
                        visit(target)
            if path in self.taken:
                order[path] = None

        for path in self.taken:
            visit(path)
        return list(order)

    def _take_effects(self) -> None:
        """Statements that change what is taken: `TABLE.update(…)`, `f.x = …`, `@register`."""
        size = -1
        while size != (size := sum(map(len, self.taken.values()))):
            for path in list(self.taken):
                names = {name for d in self.taken[path].values() for name in d.names}
                for definition in self._module(path).definitions:
                    if definition.first not in self.taken[path] and names & _changed(definition):
                        self._take(path, definition)

    def _follow(self, node: ast.stmt, bound: str, path: Path) -> None:
        """Make available what `bound` stands for after the import `node` in the file `path`."""
        alias = next(a for a in _aliases(node) if (a.asname or a.name.partition(".")[0]) == bound)
        if isinstance(node, ast.Import):
            self._add_import(Import(alias.name, "", bound), path)
            return
        assert isinstance(node, ast.ImportFrom)
        module = _absolute(node, self._dotted(path))
        target = self._find(module)
        if target is None:
            self._add_import(Import(module, alias.name, bound), path)
        elif bound != alias.name:
            self.fault(f"`{alias.name} as {bound}` cannot be written out; import `{alias.name}`")
        else:
            self._need(target, bound, module)

    def _add_import(self, wanted: Import, path: Path) -> None:
        if self._find(wanted.package) is not None:
            self.fault(
                f"`import {wanted.module}` in {self.project.relative(path)} hides what it uses; "
                f"write `from {wanted.module} import name`"
            )
        elif wanted.package not in (*ALLOWED, *sys.stdlib_module_names):
            self.fault(f"imports {wanted.package}; a reader has only {', '.join(ALLOWED)}")
        else:
            self.imports.add(wanted)

    def _need(self, path: Path, name: str, module: str) -> None:
        definitions = self._module(path).by_name.get(name, ())
        if not definitions:
            is_module = self._find(f"{module}.{name}") is not None
            reason = f"`{module}` defines no `{name}`"
            if is_module:
                reason = f"`{module}.{name}` is a module; write `from {module}.{name} import …`"
            self.fault(f"{reason}, so it cannot be written out")
        for definition in definitions:
            if definition.is_import:
                self._follow(definition.node, name, path)
            else:
                self._take(path, definition)

    def _take(self, path: Path, definition: Definition) -> None:
        taken = self.taken.setdefault(path, {})
        if definition.first in taken:
            return
        taken[definition.first] = definition
        self._require_no_hidden_import(definition)
        module = self._module(path)
        for name in sorted(definition.uses.intersection(module.by_name)):
            self._need(path, name, self._dotted(path))
        for future in module.by_name.get("annotations", ()):
            if isinstance(future.node, ast.ImportFrom) and future.node.module == "__future__":
                self.imports.add(Import("__future__", "annotations", "annotations"))

    def _require_no_hidden_import(self, definition: Definition) -> None:
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
                if child.__dict__.get("level") or any(map(self._find, modules)):
                    self.fault(
                        f"`{ast.unparse(child)}` stands inside another statement, so it cannot "
                        "be written out; move it to the top level"
                    )

    def _module(self, path: Path) -> Module:
        try:
            return read_module(path)
        except SyntaxError as error:
            where = self.project.relative(path)
            raise Faults(
                [Fault(where, error.lineno or 0, f"does not parse: {error.msg}")]
            ) from None

    def _find(self, module: str) -> Path | None:
        """The file of a first-party module, None for any other."""
        for root in self._roots():
            path = root.joinpath(*module.split("."))
            for candidate in (path.with_suffix(".py"), path / "__init__.py"):
                if candidate.is_file() and candidate != self.script.path:
                    return candidate
        return None

    def _dotted(self, path: Path) -> str:
        """The package against which the imports of a file are relative."""
        for root in self._roots():
            if path.is_relative_to(root):
                return ".".join(path.relative_to(root).parts[:-1])
        return ""

    def _roots(self) -> tuple[Path, Path]:
        return self.script.path.parent, self.project.src


def _aliases(node: ast.stmt) -> Iterator[ast.alias]:
    assert isinstance(node, ast.Import | ast.ImportFrom)
    yield from node.names


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    return ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])])


def _changed(definition: Definition) -> frozenset[str]:
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


def _without_imports(module: Module) -> str:
    lines = module.text.split("\n")
    for definition in reversed(module.definitions):
        if definition.is_import:
            del lines[definition.first - 1 : definition.last]
    return "\n".join(lines).strip("\n")
