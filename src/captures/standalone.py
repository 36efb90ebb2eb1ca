"""An example as one file that needs none of this project: its first-party imports written out.

`from gradkernels.gelu import gelu` gives way to the definition of `gelu` and of whatever it uses,
through every first-party module, in the order in which Python executes them. Imports of other
packages are gathered at the top, with what the file does where there is no GPU. Definitions are
copied line for line, because `triton.jit` compiles the source that it finds in the file.
"""

import ast
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from captures.definitions import Definition
from captures.inline import LIMIT, Inlined, inline
from captures.origins import Import
from captures.project import Project
from captures.script import Cell, Script, parse

_OS, _TORCH = (Import(name, "", name) for name in ("os", "torch"))


@dataclass(frozen=True)
class Guard:
    """What a file does where there is no GPU, and the imports that it does it with."""

    code: str
    imports: frozenset[Import]


INTERPRETS = Guard(
    """\
# Without a CUDA GPU, Triton interprets kernels; it asks for this when it is imported.
if not torch.cuda.is_available():
    os.environ.setdefault("TRITON_INTERPRET", "1")""",
    frozenset({_OS, _TORCH}),
)
REFUSES = Guard(
    """\
if not torch.cuda.is_available():
    raise SystemExit("This needs a CUDA GPU, and torch finds none.")""",
    frozenset({_TORCH}),
)


def standalone(project: Project, script: Script) -> str:
    """The whole example as one file; raises `Faults` where it cannot be one."""
    return _file(script, script.cells, inline(project, script, script.cells))


def runnable(project: Project, script: Script, cell: str) -> str:
    """One cell with all cells before it as one file; raises `Faults` where it cannot be one."""
    names = [each.name for each in script.cells]
    cells = script.cells[: names.index(cell) + 1]
    return _file(script, cells, inline(project, script, cells))


def _file(script: Script, cells: Sequence[Cell], parts: Inlined) -> str:
    imports = import_lines(parts.imports, _guard(script, parts))
    text = "\n\n".join(filter(None, [_header(script, cells, parts), imports]))
    for index, (origin, definitions) in enumerate(parts.modules):
        text += "\n\n\n" if index else "\n\n"
        text += f"# {origin}\n\n\n{definition_lines(definitions)}"
    is_block = bool(parts.modules)
    for cell, code in zip(cells, parts.cells, strict=True):
        if code:
            begins, ends = _block_ends(code)
            text += "\n\n\n" if is_block or begins else "\n\n"
            text += f"# %% {cell.name}\n{code}"
            is_block = ends
    for each in parts.imports:
        if each.target == "matplotlib.pyplot":
            text += f"\n\n{each.bound}.show()"
    return text + "\n"


def _guard(script: Script, parts: Inlined) -> Guard | None:
    if script.needs_gpu:
        return REFUSES if "torch" in parts.packages else None
    return INTERPRETS if "triton" in parts.packages else None


def _header(script: Script, cells: Sequence[Cell], parts: Inlined) -> str:
    whole = len(cells) == len(script.cells)
    file = f"{script.name.rpartition('/')[2] if whole else cells[-1].name}.py"
    lines = [f'# From "Backward in Triton": the example {script.name}']
    lines[0] += "." if whole else ","
    if not whole:
        lines.append(f'# up to its cell "{cells[-1].name}".')
    if parts.modules:
        lines.append("# What it imports from there is written out here.")
    lines += ["#", f"# It needs {_listed(parts.packages)}." if parts.packages else ""]
    if script.needs_gpu:
        lines += ["#", "# Run it on a machine with a CUDA GPU:"]
    elif "triton" in parts.packages:
        lines += [
            "#",
            "# Run it, on a CUDA GPU or else in Triton's interpreter, which needs numpy:",
        ]
    else:
        lines += ["#", "# Run it:"]
    return "\n".join([*filter(None, lines), f"#     python {file}"])


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def import_lines(imports: Iterable[Import], guard: Guard | None = None) -> str:
    """Import statements in sections: the future, the standard library, installed packages.

    A guard stands behind torch, which it asks for a GPU, and before whatever may import Triton.
    """
    future, standard, torch, others = (list[Import]() for _ in range(4))
    for each in {*imports, *(guard.imports if guard else ())}:
        if each.module == "__future__":
            future.append(each)
        elif each.package in sys.stdlib_module_names:
            standard.append(each)
        else:
            (torch if guard and each == _TORCH else others).append(each)
    parts = [_section(future), _section(standard), _section(torch)]
    parts += [guard.code if guard else "", _section(others)]
    return "\n\n".join(filter(None, parts))


def _section(imports: Iterable[Import]) -> str:
    modules: set[str] = set()
    members: dict[str, set[str]] = {}
    for each in imports:
        if not each.name:
            renamed = f" as {each.bound}" if each.bound != each.package else ""
            modules.add(f"import {each.module}{renamed}")
        else:
            renamed = f" as {each.bound}" if each.bound != each.name else ""
            members.setdefault(each.module, set()).add(each.name + renamed)
    return "\n".join([*sorted(modules), *(_from(name, members[name]) for name in sorted(members))])


def _from(module: str, names: Iterable[str]) -> str:
    names = sorted(names, key=_kind_and_name)
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= LIMIT:
        return line
    return f"from {module} import (\n" + "".join(f"    {name},\n" for name in names) + ")"


def _kind_and_name(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest: the order that import sorters use."""
    kind = 0 if name.isupper() and len(name) > 1 else 1 if name[:1].isupper() else 2
    return kind, name


def definition_lines(definitions: Sequence[Definition]) -> str:
    """Definitions with two blank lines between; adjoining constants stay together."""
    text = definitions[0].text
    for before, after in pairwise(definitions):
        adjoin = after.first == before.last + 1
        text += ("\n" if adjoin else "\n\n\n") + after.text
    return text


def _block_ends(code: str) -> tuple[bool, bool]:
    """Whether code begins, and whether it ends, with a function or class."""
    body = parse(code).body
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return isinstance(body[0], kinds), isinstance(body[-1], kinds)
