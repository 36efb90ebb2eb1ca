"""Find what a command line names: `package.module:name` or `path/to/file.py:name`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from gradproof.case import Case
from gradproof.frames import line_of_error
from gradproof.tensors import count

_SHAPE = re.compile(r"\s*([a-z]\w*)?\s*\[((?:\s*\d+\s*,)*(?:\s*\d+)?\s*)\]\s*(?:,\s*|$)")


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
    _import_from(Path.cwd())
    with _foreign(name):
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if not f"{name}.".startswith(f"{error.name}."):
                raise  # it was found, and does not find another
            raise UnusableError(f"no module named {error.name!r}, wanted for {name!r}") from None


def _file(path: str) -> Any:
    if not Path(path).is_file():
        raise UnusableError(f"no file {path!r}")
    name = "_gradproof_" + re.sub(r"\W", "_", path)
    if name in sys.modules:
        return sys.modules[name]
    _import_from(Path(path).resolve().parent)  # as Python does for a script
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _foreign(path):
        spec.loader.exec_module(module)
    return module


def _import_from(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@contextmanager
def _foreign(name: str) -> Iterator[None]:
    """Code that is not ours: whatever it raises is one line, with its place."""
    try:
        yield
    except UnusableError:
        raise
    except (Exception, SystemExit) as error:
        said = error.msg if isinstance(error, SyntaxError) else " ".join(str(error).split())
        place = line_of_error(error)
        where = f"{name!r} fails at {place}" if place else f"{name!r} fails"
        raise UnusableError(f"{where}: {type(error).__name__}: {said}".rstrip(": ")) from None


def load_case(op: str, inputs: str | None = None, reference: str | None = None) -> Case:
    """The case that a command line describes.

    op: names a callable, a `Case`, or a function of no arguments that returns a `Case`.
    inputs: names a function that returns the tuple of inputs (or a `Case`), or lists shapes, as in
        `float32[4, 64], float32[64]`.
    """
    target = load(op)
    truth = None if reference is None else _callable(reference)
    if inputs is None:
        case = _as_case(op, target)
        return case if truth is None else replace(case, reference=truth)
    _refuse_case(op, target)
    given = _made(inputs, load(inputs)) if ":" in inputs else shapes(inputs)
    if isinstance(given, Case):
        return replace(given, op=target, reference=truth or given.reference)
    if isinstance(given, tuple | list):
        _refuse_call(op, target, len(given))
    return Case(target, given, truth)


def _as_case(name: str, target: Any) -> Case:
    if not (isinstance(target, Case) or callable(target)):
        raise UnusableError(f"{name!r} is {_article(target)}: expected an op or a Case")
    if not (isinstance(target, Case) or _needs_nothing(target)):
        raise UnusableError(f"{name!r} is no Case and returns none: give its inputs")
    made = _made(name, target)
    if not isinstance(made, Case):
        raise UnusableError(
            f"{name!r} returns {_article(made)}, not a Case: return one, or give the op's inputs"
        )
    return made


def _made(name: str, target: Any) -> Any:
    if not callable(target):
        return target
    with _foreign(name):
        return target()


def _refuse_case(name: str, target: Any) -> None:
    """A case in the place of an op: it brings inputs of its own."""
    if isinstance(target, Case):
        raise UnusableError(f"{name!r} is a Case, which has its inputs; leave out --inputs")
    if not callable(target):
        raise UnusableError(f"{name!r}: expected a callable, got {type(target).__name__}")
    if _parameters(target) == [] and isinstance(_made(name, target), Case):
        raise UnusableError(f"{name!r} returns a Case, which has its inputs; leave out --inputs")


def _refuse_call(name: str, op: Callable[..., Any], how_many: int) -> None:
    if isinstance(op, type):
        return  # no op: Case says what to pass in place of a class
    try:
        inspect.signature(op).bind(*range(how_many))
    except ValueError:
        pass  # a builtin shows no signature
    except TypeError as error:
        raise UnusableError(
            f"{name!r} cannot be called with {count(how_many, 'input')}: {error}; give as many as "
            "it takes, or name a function of the inputs alone that calls it"
        ) from None


def _needs_nothing(target: Callable[..., Any]) -> bool:
    """Whether it may be called to see if it makes a case; `*args` says nothing either way."""
    parameters = _parameters(target)
    return parameters is not None and all(
        p.default is not p.empty or p.kind is p.VAR_KEYWORD for p in parameters
    )


def _parameters(target: Callable[..., Any]) -> list[inspect.Parameter] | None:
    try:
        return list(inspect.signature(target).parameters.values())
    except (TypeError, ValueError):
        return None


def _article(value: Any) -> str:
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _callable(name: str) -> Callable[..., Any]:
    found: Callable[..., Any] = load(name)
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
        if match is None:
            raise _bad_shape(
                text[position:],
                "expected package.module:function, or shapes such as 'float32[4, 64], float32[64]'",
            )
        shape = [int(n) for n in match[2].split(",") if n.strip()]
        dtype = _dtype(match[1], match[0])
        tensors.append(torch.randn(shape, generator=generator).to(device, dtype))
        position = match.end()
    return tuple(tensors)


def _dtype(name: str | None, item: str) -> torch.dtype:
    if name is None:
        raise _bad_shape(item, f"the dtype is missing; write float32{item.strip().rstrip(',')}")
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype):
        raise _bad_shape(item, f"expected a dtype of torch such as float32, got {name}")
    if not dtype.is_floating_point:
        raise _bad_shape(
            item,
            f"only floating-point tensors are drawn, since which values of {name} are valid the op "
            "alone knows; name a function that returns the tuple of inputs, as file.py:inputs",
        )
    return dtype


def _bad_shape(item: str, message: str) -> UnusableError:
    return UnusableError(f"inputs {item.strip().rstrip(',')!r}: {message}")
