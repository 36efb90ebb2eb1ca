"""What an op carries from one call to the next, as far as one can see it: buffers and generators.

Running statistics, a moving scale, a generator of its own: these move with every call, and rightly.
So each call begins with the state the op was given in. It moves copies, which its backward finds
moved as it would in training; the caller's own are put back.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import CodeType, FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import _disable_current_modes


@dataclass(frozen=True)
class State:
    """The buffers of modules, and generators with the state they were in."""

    buffers: tuple[tuple[torch.nn.Module, str, Tensor], ...] = ()
    generators: tuple[tuple[torch.Generator, Tensor], ...] = ()

    @classmethod
    def of(cls, *holders: Any) -> State:
        """Of whatever can be seen from functions, modules and values."""
        found = list(_seen(holders, set()))
        modules = [x for x in found if isinstance(x, torch.nn.Module)]
        generators = [x for x in found if isinstance(x, torch.Generator)]
        return cls(
            tuple((m, n, b) for m in modules for n, b in m._buffers.items() if b is not None),
            tuple((g, g.get_state()) for g in generators),
        )

    def begin(self) -> None:
        """Back to the start, with copies of the buffers; one that is shared stays so."""
        with _disable_current_modes():  # fences around them would only be in the way of resizing
            copies = {id(b): b.detach().clone() for _, _, b in self.buffers}
        for module, name, buffer in self.buffers:
            module._buffers[name] = copies[id(buffer)]
        for generator, state in self.generators:
            generator.set_state(state)

    @contextmanager
    def kept(self) -> Iterator[None]:
        try:
            yield
        finally:
            for module, name, buffer in self.buffers:
                module._buffers[name] = buffer
            for generator, state in self.generators:
                generator.set_state(state)

    @property
    def outgrown(self) -> bool:
        """Whether a call has left a buffer of another size: it was not made for such inputs."""
        left = ((m._buffers[n], b) for m, n, b in self.buffers)
        return any(now is None or now.shape != b.shape for now, b in left)

    def reseeded(self, seed: int) -> State:
        """The same, with generators that give other numbers."""
        other = [
            (g, torch.Generator(g.device).manual_seed(seed).get_state()) for g, _ in self.generators
        ]
        return replace(self, generators=tuple(other))

    def before(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """`function`, each call of which begins with this state."""
        return Begun(function, self) if self.buffers or self.generators else function


@dataclass(frozen=True)
class Begun:
    """A function and the state in which each call of it begins."""

    function: Callable[..., Any]
    state: State

    def __call__(self, *inputs: Any) -> Any:
        self.state.begin()
        return self.function(*inputs)


def changed(
    op: Callable[..., Any], change: Callable[[Callable[..., Any]], Callable[..., Any]]
) -> Callable[..., Any]:
    """`change` of the function alone: what begins its calls stays outside."""
    return Begun(change(op.function), op.state) if isinstance(op, Begun) else change(op)


def _seen(holders: Sequence[Any], known: set[int]) -> Iterator[Any]:
    """Modules and generators that these values are, hold, or as functions refer to."""
    for value in holders:
        if id(value) in known:
            continue
        known.add(id(value))
        if isinstance(value, torch.nn.Module | torch.Generator):
            yield value
        yield from _seen(list(_held(value)), known)


def _held(value: Any) -> Iterator[Any]:
    if isinstance(value, torch.nn.Module):
        yield from value.children()
        yield from (x for x in vars(value).values() if isinstance(x, torch.Generator))
    elif isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, MethodType):
        yield from (value.__self__, value.__func__)
    elif isinstance(value, FunctionType):
        yield from _referred(value)
    elif callable(value) and not isinstance(value, type):
        yield from getattr(value, "__dict__", {}).values()


def _referred(function: FunctionType) -> Iterator[Any]:
    """What a function closes over, and the modules and generators it finds by a global name."""
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not yet assigned
            continue
    for name in _names(function.__code__):
        if isinstance(x := function.__globals__.get(name), torch.nn.Module | torch.Generator):
            yield x


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)
