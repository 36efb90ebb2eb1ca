"""What code imports, and which first-party files that loads."""

import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from captures.fault import Fault, Faults
from captures.project import read_text
from captures.script import parse


def parsed(text: str, name: str) -> ast.Module:
    """The syntax tree of a file; raises ``Faults`` under its ``name``."""
    try:
        return parse(text)
    except SyntaxError as error:
        message = f"does not parse: {error.msg}"
        raise Faults([Fault(name, error.lineno or 0, message)]) from None


def read(tree: ast.Module, text: str, package: str) -> list[tuple[str, str]]:
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
            module = absolute(node, package)
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


def absolute(node: ast.ImportFrom, package: str) -> str:
    """The module that an import names, seen from a module of ``package``."""
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


def files(wanted: tuple[str, str], roots: tuple[Path, ...]) -> Iterator[Path]:
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
        for node in parsed(read_text(init, init.name), init.name).body
    )
