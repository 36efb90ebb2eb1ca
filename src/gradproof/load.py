"""Find what a command line names: `package.module:name` or `path/to/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from gradproof.case import Case

_SHAPE = re.compile(r"\s*([a-z]+[0-9]+)\s*\[([\d\s,]*)\]\s*(?:,|$)")


class UnusableError(ValueError):
    """A name that leads nowhere, or to something that cannot be used; the message says which."""


def load(name: str) -> Any:
    """The object called `package.module:attribute` or `path/to/file.py:attribute`."""
    module_name, colon, attribute = name.rpartition(":")
    if not colon or not module_name or not attribute:
        raise UnusableError(f"{name!r}: expected package.module:name or path/to/file.py:name")
    module = _file(module_name) if module_name.endswith(".py") else _module(module_name)
    found: Any = module
    for part in attribute.split("."):
        if not hasattr(found, part):
            raise UnusableError(f"{name!r}: {module_name} has no {attribute}")
        found = getattr(found, part)
    return found


def _module(name: str) -> Any:
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise UnusableError(f"no module named {error.name!r}, wanted for {name!r}") from None


def _file(path: str) -> Any:
    if not Path(path).is_file():
        raise UnusableError(f"no file {path!r}")
    name = "_gradproof_" + re.sub(r"\W", "_", path)
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def load_case(op: str, inputs: str | None = None, reference: str | None = None) -> Case:
    """The case that a command line describes.

    op: names a callable, a `Case`, or a function of no arguments that returns a `Case`.
    inputs: names a function that returns the tuple of inputs (or a `Case`), or lists shapes, as in
        `float32[4, 64], float32[64]`.
    """
    target = load(op)
    if inputs is None:
        return _as_case(op, target)
    given = load(inputs) if ":" in inputs else shapes(inputs)
    given = given() if callable(given) else given
    if isinstance(given, Case):
        return given
    return Case(target, given, None if reference is None else _callable(reference))


def _as_case(name: str, target: Any) -> Case:
    if isinstance(target, Case):
        return target
    if callable(target):
        try:
            made = target()
        except TypeError:
            made = None
        if isinstance(made, Case):
            return made
    raise UnusableError(f"{name!r} is no Case and returns none: give its inputs")


def _callable(name: str) -> Callable[..., Any]:
    found = load(name)
    if not callable(found):
        raise UnusableError(f"{name!r}: expected a callable, got {type(found).__name__}")
    return found


def shapes(text: str) -> tuple[torch.Tensor, ...]:
    """Standard normal tensors of the shapes listed in `text`."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    generator = torch.Generator().manual_seed(0)
    tensors, position = [], 0
    while position < len(text):
        match = _SHAPE.match(text, position)
        dtype = getattr(torch, match[1], None) if match else None
        if match is None or not (isinstance(dtype, torch.dtype) and dtype.is_floating_point):
            raise UnusableError(
                f"inputs {text[position:].strip()!r}: expected package.module:function, or shapes "
                "such as 'float32[4, 64], float32[64]'"
            )
        shape = [int(n) for n in match[2].split(",") if n.strip()]
        tensors.append(torch.randn(shape, generator=generator).to(device, dtype))
        position = match.end()
    return tuple(tensors)
