"""The definitions that an example needs, as parts of one file that needs nothing of the project.

Where two modules, or a module and a cell, call different things alike, the module's is renamed; a
module that is used as an object becomes one.
"""

import ast
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from captures.definitions import Definition, Module, parse_module
from captures.fault import Fault, Faults
from captures.needs import Needs
from captures.origins import Import, Origin
from captures.project import Project
from captures.rename import rename
from captures.script import Cell, Script

LIMIT = 100  # columns


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


def inline(
    project: Project,
    script: Script,
    cells: Sequence[Cell],
    taken_names: frozenset[str] = frozenset(),
) -> Inlined:
    """The parts of one file that does what `cells` do; raises `Faults`.

    No definition gets one of `taken_names` unless a cell imports it by that name.
    """
    needs = Needs(project, script)
    codes = needs.add_cells(cells)
    modules = _Writer(needs, taken_names).written(cells)
    if needs.faults:
        raise Faults(needs.faults)
    return Inlined(tuple(sorted(needs.imports)), modules, tuple(codes))


def why_not_inline(project: Project, script: Script) -> list[Fault]:
    """What keeps an example from being one file, found without writing that file."""
    needs = Needs(project, script)
    needs.add_cells(script.cells)
    _Writer(needs).names(script.cells)
    return needs.faults


@dataclass
class _Writer:
    needs: Needs
    taken_names: frozenset[str] = frozenset()

    def written(self, cells: Sequence[Cell]) -> tuple[tuple[str, tuple[Definition, ...]], ...]:
        """The definitions of each module, renamed where two things would have one name."""
        kept = self.needs.kept
        if kept is None:
            return self._write(self.names(cells))
        self._require_imports_apart(cells)
        kept.candidates = kept.candidates or self._candidates()
        used = self._used(cells) & kept.candidates
        if used not in kept.written:
            known = len(self.needs.faults)
            written = self._write(self._named(used))
            if len(self.needs.faults) > known:
                return written
            kept.written[used] = written
        return kept.written[used]

    def _write(self, names: dict[Origin, str]) -> tuple[tuple[str, tuple[Definition, ...]], ...]:
        modules = []
        for path in self.needs.order:
            taken = [self.needs.taken[path][line] for line in sorted(self.needs.taken[path])]
            definitions = [self._renamed(path, definition, names) for definition in taken]
            if path in self.needs.objects:
                definitions.append(self._object(path, names))
            if definitions:
                modules.append((self.needs.project.relative(path), tuple(definitions)))
        return tuple(modules)

    def names(self, cells: Sequence[Cell]) -> dict[Origin, str]:
        """The name of everything in the one file: its own, or one with its module's before it."""
        self._require_imports_apart(cells)
        return self._named(self._used(cells))

    def _used(self, cells: Sequence[Cell]) -> frozenset[str]:
        """The names that no definition may have."""
        own = {each.bound for each in self.needs.imports} | set(self.needs.asked.values())
        return frozenset(own | bound_by(self.needs.script, cells) | self.taken_names)

    def _named(self, reserved: frozenset[str]) -> dict[Origin, str]:
        names = dict(self.needs.asked)
        used = set(reserved)
        for path in self.needs.order:
            wanted = [name for d in self.needs.taken[path].values() for name in d.names]
            for name in dict.fromkeys([*wanted, *([""] if path in self.needs.objects else [])]):
                origin = Origin(path, name)
                if origin not in names:
                    plain = name or _stem(path)
                    names[origin] = plain if plain not in used else _prefixed(_stem(path), name)
                    if names[origin] in used:
                        self.needs.fault(f"`{names[origin]}` would be two things; rename `{plain}`")
                    used.add(names[origin])
        return names

    def _require_imports_apart(self, cells: Sequence[Cell]) -> None:
        owners: dict[str, str] = {}
        for each in self.needs.imports:
            other = owners.setdefault(each.bound, each.target)
            if other != each.target:
                self.needs.fault(f"`{each.bound}` is both {other} and {each.target}; rename one")
        read = {n for taken in self.needs.taken.values() for d in taken.values() for n in d.uses}
        asked = set(self.needs.asked.values())
        for cell in cells:
            for definition in parse_module(self.needs.script.path, cell.source).definitions:
                if definition.is_import:
                    continue
                self.needs.line = cell.first_line + definition.node.lineno - 1
                for name in definition.names:
                    if name in read and (name in owners or name in asked):
                        self.needs.fault(
                            f"binds `{name}` anew, which imported code reads; rename it"
                        )

    def _candidates(self) -> frozenset[str]:
        """Every name that `_named` may give."""
        found: set[str] = set()
        for path in self.needs.order:
            for name in ("", *(name for d in self.needs.taken[path].values() for name in d.names)):
                found |= {name or _stem(path), _prefixed(_stem(path), name)}
        return frozenset(found)

    def _renamed(self, path: Path, definition: Definition, names: dict[Origin, str]) -> Definition:
        visible = {name: names[Origin(path, name)] for name in definition.names}
        module = self.needs.origins.module(path)
        for name in definition.uses.intersection(module.by_name):
            visible[name] = self._visible(path, module, name, names)
        if all(old == new for old, new in visible.items()):
            return definition
        return replace(
            definition,
            text=rename(definition.text, visible),
            names=tuple(visible[name] for name in definition.names),
            uses=frozenset(visible.get(name, name) for name in definition.uses),
        )

    def _visible(self, path: Path, module: Module, name: str, names: dict[Origin, str]) -> str:
        """What a name that a module reads is called in the one file."""
        definition = module.by_name[name][-1]
        if not definition.is_import:
            return names[Origin(path, name)]
        origin = self.needs.origins.of(path, definition, name)
        return names.get(origin, name) if isinstance(origin, Origin) else name

    def _object(self, path: Path, names: dict[Origin, str]) -> Definition:
        """A module that is used as an object, as an object."""
        module = self.needs.origins.module(path)
        members = {
            name: self._visible(path, module, name, names)
            for name in sorted(self.needs.objects[path].intersection(module.by_name))
        }
        name = names[Origin(path)]
        fields = ", ".join(f"{key}={value}" for key, value in members.items())
        text = f"{name} = SimpleNamespace({fields})"
        if len(text) > LIMIT:
            lines = "".join(f"    {key}={value},\n" for key, value in members.items())
            text = f"{name} = SimpleNamespace(\n{lines})"
        end = len(module.text) + 1
        return Definition(ast.Pass(), (name,), frozenset(members.values()), end, end, text)


def _stem(path: Path) -> str:
    return (path.parent.name if path.stem == "__init__" else path.stem).strip("_")


def _prefixed(stem: str, name: str) -> str:
    if not name:
        return f"{stem}_module"
    private = "_" if name.startswith("_") else ""
    prefix = stem.upper() if name.isupper() else stem
    return f"{private}{prefix}_{name.lstrip('_')}"


def bound_by(script: Script, cells: Sequence[Cell]) -> set[str]:
    """The names that cells bind themselves, rather than import."""
    return {
        name
        for cell in cells
        for definition in parse_module(script.path, cell.source).definitions
        if not definition.is_import
        for name in definition.names
    }
