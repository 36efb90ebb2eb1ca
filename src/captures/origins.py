"""Where the names come from that code imports: which package, or which definition of which file."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from captures.definitions import Definition, Module, read_module
from captures.imports import absolute
from captures.project import Project


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
class Origin:
    """Where a name comes from: a definition of a module, or the module itself (no name)."""

    path: Path
    name: str = ""


@dataclass
class Origins:
    """Follows the imports of one script and of whatever modules they lead to.

    `fault` is told of an import that leads nowhere. Modules raise `Faults` if they do not parse.
    """

    project: Project
    script: Path
    fault: Callable[[str], None]
    read: set[Path] = field(default_factory=set)  # the modules that were looked into
    _files: dict[str, Path | None] = field(default_factory=dict)  # by dotted name
    _packages: dict[Path, str] = field(default_factory=dict)
    _found: dict[tuple[Path, int, str], Origin | Import | None] = field(default_factory=dict)

    def of(self, path: Path, node: Definition, bound: str) -> Origin | Import | None:
        """What `bound` stands for after the import `node`, through any number of re-exports."""
        key = (path, node.first, bound)
        if path == self.script:  # where lines are counted from each cell
            return self._follow(path, node, bound)
        if key not in self._found:
            self._found[key] = self._follow(path, node, bound)
        return self._found[key]

    def _follow(self, path: Path, node: Definition, bound: str) -> Origin | Import | None:
        seen: set[tuple[Path, str]] = set()
        while True:
            statement = node.node
            alias = next(a for a in _aliases(statement) if bound_name(a) == bound)
            if isinstance(statement, ast.Import):
                return Import(alias.name, "", bound)
            assert isinstance(statement, ast.ImportFrom)
            module = self.imported_from(path, statement)
            target = self.file(module)
            if target is None:
                return Import(module, alias.name, bound)
            found = self.module(target).by_name.get(alias.name)
            if found is None or (target, alias.name) in seen or target == path:
                inner = self.file(f"{module}.{alias.name}")
                if inner is None:
                    self.fault(f"`{module}` defines no `{alias.name}`, so it cannot be written out")
                return Origin(inner) if inner else None
            if not all(definition.is_import for definition in found):
                return Origin(target, alias.name)
            seen.add((target, alias.name))
            path, node, bound = target, found[-1], alias.name

    def module(self, path: Path) -> Module:
        self.read.add(path)
        return read_module(path, self.project.relative(path))

    def file(self, module: str) -> Path | None:
        """The file of a first-party module, None for any other."""
        if module not in self._files:
            roots = (self.script.parent, self.project.src)
            paths = [root.joinpath(*module.split(".")) for root in roots]
            candidates = [f for p in paths for f in (p.with_suffix(".py"), p / "__init__.py")]
            files = (f for f in candidates if f != self.script and f.is_file())
            self._files[module] = next(files, None)
        return self._files[module]

    def imported_from(self, path: Path, statement: ast.ImportFrom) -> str:
        """The module that an import in the file `path` names, however relative."""
        if path not in self._packages:
            roots = (self.script.parent, self.project.src)
            root = next(root for root in roots if path.is_relative_to(root))
            self._packages[path] = ".".join(path.relative_to(root).parts[:-1])
        return absolute(statement, self._packages[path])


def bound_name(alias: ast.alias) -> str:
    return alias.asname or alias.name.partition(".")[0]


def _aliases(node: ast.stmt) -> Iterator[ast.alias]:
    assert isinstance(node, ast.Import | ast.ImportFrom)
    yield from node.names
