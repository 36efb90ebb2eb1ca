"""Which line of a person's own code an error or a stack stands in."""

from __future__ import annotations

import importlib.util
import os
import re
import sysconfig
import traceback
from collections.abc import Iterable
from pathlib import Path

# As faulthandler writes them, the innermost first.
_DUMPED = re.compile(r'File "(.+)", line (\d+) in ')


def line_of_error(error: BaseException) -> str:
    """Where `error` was raised, as `ops.py:12`; empty if only libraries were at work."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{_short(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    return users_line((frame.filename, frame.lineno or 0) for frame in reversed(frames))


def straight_from_torch(error: BaseException) -> bool:
    """Whether nobody's code but torch's stands between the call of an op and `error`."""
    _, *below = traceback.walk_tb(error.__traceback__)
    files = [Path(frame.f_code.co_filename).resolve() for frame, _ in below]
    return all(file.is_relative_to(folder) for file in files for folder in _folders("torch"))


def line_of_dump(dump: str) -> str:
    """Where a process stood when faulthandler wrote `dump`."""
    return users_line((file, int(line)) for file, line in _DUMPED.findall(dump))


def users_line(frames: Iterable[tuple[str, int]]) -> str:
    """The first of the frames (file, line) that is not a library's, as `ops.py:12`."""
    return next((f"{_short(file)}:{line}" for file, line in frames if not _library(file)), "")


def _short(file: str) -> str:
    relative = os.path.relpath(file)
    return file if relative.startswith(os.pardir) else relative


def _library(file: str) -> bool:
    if file.startswith("<"):
        return True
    path = Path(file).resolve()
    if any(path.is_relative_to(folder) for folder in (_own_folder(), *_folders("torch", "triton"))):
        return True
    installed = {"site-packages", "dist-packages"} & set(path.parts)
    return path.is_relative_to(Path(sysconfig.get_path("stdlib")).resolve()) and not installed


def _own_folder() -> Path:
    """Of this package; of the script or the notebook's cells where it is written out into one.

    There nobody can tell its lines from the person's, so none is named.
    """
    return Path(_own_folder.__code__.co_filename).resolve().parent


def _folders(*packages: str) -> list[Path]:
    specs = [importlib.util.find_spec(package) for package in packages]
    return [Path(spec.origin).resolve().parent for spec in specs if spec and spec.origin]
