"""The fingerprint of the code that an example runs: what must stay for a transcript to hold.

It is taken over the syntax tree, so that comments, docstrings and formatting do not count, and
over what the tree means rather than how a Python version spells it, so that 3.11 to 3.13 agree.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from captures.fault import Fault, Faults
from captures.memory import Memory
from captures.project import Project, read_text
from captures.script import Script, parse


def fingerprint(project: Project, script: Script) -> str:
    """``sha256:…`` over the script's cells, its first-party modules and its data files."""
    return Sources(project).fingerprint(script)


def tree_fingerprint(paths: Iterable[Path], memory: Memory | None = None) -> str:
    """``sha256:…`` over every Python file in and under ``paths``."""
    memory = memory or Memory()
    digest = hashlib.sha256()
    for root in sorted(paths):
        files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
        for path in files:
            name = path.relative_to(root.parent).as_posix()
            _add(digest, name, _digest(memory, read_text(path, name), name))
    return f"sha256:{digest.hexdigest()}"


def first_party_modules(project: Project, script: Script) -> list[Path]:
    """Every module under ``src`` or beside the script that it can load, however late; sorted."""
    return Sources(project).modules(script)


class Sources:
    """The first-party modules as they stand now: each is read, and its imports followed, once."""

    def __init__(self, project: Project, memory: Memory | None = None):
        self.project = project
        self.memory = memory or Memory()
        self._stamps: dict[Path, Stamp] = {}
        self._texts: dict[Path, str] = {}
        self._fingerprints: dict[Script, str] = {}
        self._drawn_on: dict[Script, dict[str, str]] = {}
        self._reached: dict[tuple[Path, tuple[str, str]], tuple[Path, ...]] = {}
        self._direct: dict[tuple[Path, Path], list[Path]] = {}
        # A file that comes or goes changes its directory.
        directories = (path for path in project.src.rglob("*") if path.is_dir())
        self._note(project.src, *directories)

    def hold(self) -> bool:
        """Whether every file that was read, and every directory looked into, is as it was."""
        return all(stamp == stamp_of(path) for path, stamp in self._stamps.items())

    def fingerprint(self, script: Script) -> str:
        if script not in self._fingerprints:
            try:
                self._note(*script.data)
                data = [hashlib.sha256(path.read_bytes()).hexdigest() for path in script.data]
                self._fingerprints[script] = self.memory.recall(
                    "fingerprint", *flat(self.texts(script)), *data, work=lambda: self._take(script)
                )
            except RecursionError:
                where = self.project.relative(script.path)
                what = "this, or code that it imports, nests too deeply"
                fault = Fault(where, 0, f"{what}; split its longest statement")
                raise Faults([fault]) from None
        return self._fingerprints[script]

    def _take(self, script: Script) -> str:
        digest = hashlib.sha256()
        for cell in script.cells:
            _add(digest, f"cell {cell.name} {sorted(cell.tags)}", canonical(cell.source).encode())
        for path in self.modules(script):
            name = self.project.relative(path)
            _add(digest, name, _digest(self.memory, self._text(path), name))
        for path in script.data:
            _add(digest, self.project.relative(path), path.read_bytes())
        return f"sha256:{digest.hexdigest()}"

    def texts(self, script: Script) -> dict[str, str]:
        """The texts, by name, of the script and of every module that it can load."""
        if script not in self._drawn_on:
            self._drawn_on[script] = {
                self.project.relative(path): self._text(path)
                for path in (script.path, *self.modules(script))
            }
        return self._drawn_on[script]

    def modules(self, script: Script) -> list[Path]:
        """Every module that the script can load, sorted."""
        beside = script.path.parent
        self._note(beside)
        found: set[Path] = set()
        name = self.project.relative(script.path)
        pending = self._files(beside, script.text, "", name)
        while pending:
            path = pending.pop()
            if path not in found and path != script.path:
                found.add(path)
                pending += self._imported_by(path, beside)
        return sorted(found)

    def _imported_by(self, path: Path, beside: Path) -> list[Path]:
        key = (path, beside)
        if key not in self._direct:
            root = next(r for r in (beside, self.project.src) if path.is_relative_to(r))
            package = ".".join(path.relative_to(root).parts[:-1])
            name = self.project.relative(path)
            self._direct[key] = self._files(beside, self._text(path), package, name)
        return self._direct[key]

    def _files(self, beside: Path, text: str, package: str, name: str) -> list[Path]:
        def work() -> list[tuple[str, str]]:
            return _imports(_parsed(text, name), text, package)

        files: list[Path] = []
        for module, member in self.memory.recall("imports", text, package, work=work):
            wanted = (module, member)
            key = (beside, wanted)
            if key not in self._reached:
                self._reached[key] = tuple(_files(wanted, (beside, self.project.src)))
            files += self._reached[key]
        return files

    def _text(self, path: Path) -> str:
        if path not in self._texts:
            self._note(path)
            self._texts[path] = read_text(path, self.project.relative(path))
        return self._texts[path]

    def _note(self, *paths: Path) -> None:
        for path in paths:
            self._stamps.setdefault(path, stamp_of(path))


def flat(texts: Mapping[str, str]) -> list[str]:
    """Names and texts in one row, as a memory takes them."""
    return [part for pair in texts.items() for part in pair]


Stamp = tuple[int, int] | None


def stamp_of(path: Path) -> Stamp:
    """What changes when a file or directory does; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def canonical(source: str) -> str:
    """The source's meaning, spelt alike by every supported Python."""
    return _spell(parse(source))


def _digest(memory: Memory, text: str, name: str) -> bytes:
    """The hash of a module's meaning; raises ``Faults`` under the file's ``name``."""

    def work() -> str:
        return hashlib.sha256(_spell(_parsed(text, name)).encode()).hexdigest()

    return bytes.fromhex(memory.recall("digest", text, work=work))


def _parsed(text: str, name: str) -> ast.Module:
    try:
        return parse(text)
    except SyntaxError as error:
        message = f"does not parse: {error.msg}"
        raise Faults([Fault(name, error.lineno or 0, message)]) from None


def _add(digest: "hashlib._Hash", name: str, content: bytes) -> None:
    # Lengths first, so that no two lists of files run together into the same bytes.
    for part in (name.encode(), content):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)


_HAS_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _spell(node: object) -> str:
    if isinstance(node, ast.AST):
        if isinstance(node, ast.Constant):
            return f"{type(node.value).__name__} {node.value!r}"
        if isinstance(node, ast.JoinedStr):
            return f"JoinedStr({_spell(_parts(node))})"
        kept = []
        for name in _fields(node._fields):
            meaning = _meaning(node, name)
            # Fields that a newer Python added are empty where the syntax is old.
            if meaning is not None and meaning != []:
                kept.append(f"{name}={_spell(meaning)}")
        return f"{type(node).__name__}({', '.join(kept)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_spell, node))}]"
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


def _imports(tree: ast.Module, text: str, package: str) -> list[tuple[str, str]]:
    """``(module, name)`` of everything the code can import; name is "" for plain imports."""
    if "import" not in text:
        return []
    by_call = "import_module" in text or "__import__" in text
    return list(dict.fromkeys(_imported(_executed(tree, by_call), package)))


def _imported(nodes: Iterable[ast.AST], package: str) -> Iterator[tuple[str, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = _absolute(node, package)
            yield from ((module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and _is_import_module(node.func):
            target = node.args[0]
            if isinstance(target, ast.Constant) and isinstance(target.value, str):
                base = package if target.value.startswith(".") else ""
                yield base + target.value, ""


def _executed(tree: ast.AST, with_calls: bool) -> Iterator[ast.AST]:
    """Every statement but those that only a type checker sees; calls where they are asked for."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If) and _dotted(node.test).endswith("TYPE_CHECKING"):
            pending += node.orelse
            continue
        for child in ast.iter_child_nodes(node):
            if with_calls or not isinstance(child, ast.expr):
                pending.append(child)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")
    base = parents[: len(parents) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _is_import_module(function: ast.expr) -> bool:
    return _dotted(function) in ("import_module", "importlib.import_module", "__import__")


def _dotted(node: ast.expr) -> str:
    """``a.b.c`` as it is written; empty for any other expression."""
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _files(wanted: tuple[str, str], roots: tuple[Path, ...]) -> Iterator[Path]:
    """The first-party files that an import executes, packages' ``__init__`` included."""
    module, name = wanted
    parts = module.split(".")
    if not all(map(str.isidentifier, parts)):
        return
    for root in roots:
        directories = [root.joinpath(*parts[:depth]) for depth in range(1, len(parts) + 1)]
        if not (directories[0].is_dir() or directories[0].with_suffix(".py").is_file()):
            continue
        yield from (d / "__init__.py" for d in directories if (d / "__init__.py").is_file())
        target = directories[-1]
        if target.with_suffix(".py").is_file():
            yield target.with_suffix(".py")
        elif target.is_dir():
            yield from _from_package(target, name)
        return


def _from_package(package: Path, name: str) -> Iterator[Path]:
    """What ``from package import name`` loads besides the package itself."""
    submodule = package / name
    if name and submodule.with_suffix(".py").is_file():
        yield submodule.with_suffix(".py")
    elif name and (submodule / "__init__.py").is_file():
        yield submodule / "__init__.py"
    elif _loads_lazily(package / "__init__.py"):
        # Which module a lazy package will load for a name cannot be read off; it may be any.
        yield from package.rglob("*.py")


def _loads_lazily(init: Path) -> bool:
    return init.is_file() and any(
        isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
        for node in _parsed(read_text(init, init.name), init.name).body
    )
