"""Which examples somebody means who names them on the command line."""

import difflib
from collections.abc import Sequence
from pathlib import Path

from captures.fault import Fault, Faults
from captures.project import Project
from captures.script import script_names


def select(project: Project, wanted: Sequence[str]) -> list[str]:
    """The examples meant by names, lesson directories or paths; all of them for none.

    Raises ``Faults`` that name near matches.
    """
    names = script_names(project)
    if not wanted:
        return names
    chosen: list[str] = []
    faults = []
    for given in wanted:
        name = _as_name(project, given)
        matching = [n for n in names if n == name or n.startswith(f"{name}/")]
        if matching:
            chosen += matching
            continue
        known = {*names, *(n.split("/")[0] for n in names)}
        by_stem = [n for n in names if n.split("/")[1] == name]
        near = by_stem or difflib.get_close_matches(name, sorted(known), 3, 0.5)
        hint = f"did you mean {', '.join(near)}?" if near else "`captures run` takes them all"
        faults.append(Fault(given, 0, f"there is no such example; {hint}"))
    if faults:
        raise Faults(faults)
    return list(dict.fromkeys(chosen))


def _as_name(project: Project, given: str) -> str:
    try:
        path = Path(given).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):  # no file, a loop of links, no path at all
        path = project.root
    if path.is_relative_to(project.examples):
        given = path.relative_to(project.examples).as_posix()
    return given.removesuffix("/").removeprefix("examples/").removesuffix(".py")
