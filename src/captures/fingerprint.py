"""The fingerprint of the code that an example runs: what must stay for a transcript to hold.

It is taken over the syntax tree, so that comments, docstrings and formatting do not count, and
over what the tree means rather than how a Python version spells it, so that 3.11 to 3.13 agree.
"""

import ast
import hashlib
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path

from captures.fault import Fault, Faults
from captures.project import Project, read_text
from captures.script import Script, parse


def fingerprint(project: Project, script: Script) -> str:
    """``sha256:…`` over the script's cells, its first-party modules and its data files."""
    try:
        return _fingerprint(project, script)
    except RecursionError:
        where = project.relative(script.path)
        message = "this, or code that it imports, nests too deeply; split its longest statement"
        raise Faults([Fault(where, 0, message)]) from None


def _fingerprint(project: Project, script: Script) -> str:
    digest = hashlib.sha256()
    for cell in script.cells:
        _add(digest, f"cell {cell.name} {sorted(cell.tags)}", canonical(cell.source).encode())
    for path in first_party_modules(project, script):
        name = project.relative(path)
        _add(digest, name, _digest(_code(path, name)))
    for path in script.data:
        _add(digest, project.relative(path), path.read_bytes())
    return f"sha256:{digest.hexdigest()}"


def tree_fingerprint(paths: Iterable[Path]) -> str:
    """``sha256:…`` over every Python file in and under ``paths``."""
    digest = hashlib.sha256()
    for root in sorted(paths):
        files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
        for path in files:
            name = path.relative_to(root.parent).as_posix()
            _add(digest, name, _digest(_code(path, name)))
    return f"sha256:{digest.hexdigest()}"


def first_party_modules(project: Project, script: Script) -> list[Path]:
    """Every module under ``src`` or beside the script that it can load, however late; sorted."""
    roots = (script.path.parent, project.src)
    found: dict[Path, None] = {}
    pending = [path for wanted in _imports(script.text, "") for path in _files(wanted, roots)]
    while pending:
        path = pending.pop()
        if path in found or path == script.path:
            continue
        found[path] = None
        root = next(root for root in roots if path.is_relative_to(root))
        parts = path.relative_to(root).with_suffix("").parts
        package = ".".join(parts[:-1])
        for wanted in _imports(_code(path, project.relative(path)), package):
            pending += _files(wanted, roots)
    return sorted(found)


def canonical(source: str) -> str:
    """The source's meaning, spelt alike by every supported Python."""
    return _spell(parse(source))


@lru_cache(maxsize=512)
def _digest(text: str) -> bytes:
    return hashlib.sha256(canonical(text).encode()).digest()


def _code(path: Path, name: str) -> str:
    """The text of a module, known to parse; raises ``Faults`` under the file's ``name``."""
    text = read_text(path, name)
    try:
        parse(text)
    except SyntaxError as error:
        message = f"does not parse: {error.msg}"
        raise Faults([Fault(name, error.lineno or 0, message)]) from None
    return text


def _add(digest: "hashlib._Hash", name: str, content: bytes) -> None:
    # Lengths first, so that no two lists of files run together into the same bytes.
    for part in (name.encode(), content):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)


_HAS_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _spell(node: object) -> str:
    if isinstance(node, ast.Constant):
        return f"{type(node.value).__name__} {node.value!r}"
    if isinstance(node, ast.JoinedStr):
        return f"JoinedStr({_spell(_parts(node))})"
    if isinstance(node, ast.AST):
        kind = type(node)
        meanings = [(name, _meaning(node, name)) for name in _fields(*kind._fields)]
        # Fields that a newer Python added are empty where the syntax is old.
        kept = [f"{name}={_spell(v)}" for name, v in meanings if v is not None and v != []]
        return f"{kind.__name__}({', '.join(kept)})"
    if isinstance(node, list):
        return f"[{', '.join(map(_spell, node))}]"
    return repr(node)


@cache
def _fields(*names: str) -> list[str]:
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


@lru_cache(maxsize=512)
def _imports(text: str, package: str) -> list[tuple[str, str]]:
    """``(module, name)`` of everything the code can import; name is "" for plain imports."""
    return list(dict.fromkeys(_imported(parse(text), package)))


def _imported(tree: ast.Module, package: str) -> Iterator[tuple[str, str]]:
    for node in _executed(tree):
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


def _executed(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node but those that only a type checker sees."""
    pending = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            pending += node.orelse
        else:
            pending += ast.iter_child_nodes(node)


def _absolute(node: ast.ImportFrom, package: str) -> str:
    if not node.level:
        return node.module or ""
    parents = package.split(".")
    base = parents[: len(parents) - node.level + 1]
    return ".".join([*base, node.module] if node.module else base)


def _is_import_module(function: ast.expr) -> bool:
    return ast.unparse(function) in ("import_module", "importlib.import_module", "__import__")


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
        for node in parse(_code(init, init.name)).body
    )
