"""Looking at autograd.Functions from outside: their nodes, and what their backward returns."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction


@dataclass(frozen=True)
class Returned:
    """What one call of a Function's backward returned, before autograd checks or casts it."""

    function: type
    node: Any
    values: tuple[Any, ...]

    def destinations(self) -> Iterator[tuple[int, Any, torch.Size, torch.dtype]]:
        """(place, value, shape, dtype) of each argument that needs a gradient."""
        needing = [i for i, need in enumerate(self.node.needs_input_grad) if need]
        edges = [edge for edge in self.node.next_functions if edge[0] is not None]
        for place, (node, slot) in zip(needing, edges, strict=False):
            if place < len(self.values):
                metadata = node._input_metadata[slot]
                yield place, self.values[place], torch.Size(metadata.shape), metadata.dtype


def function_nodes(outputs: Sequence[Tensor]) -> list[Any]:
    """Every autograd.Function node behind `outputs`."""
    found, seen = [], set()
    todo: list[Any] = [y.grad_fn for y in outputs]
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if isinstance(node, BackwardCFunction):
            found.append(node)
        todo.extend(following for following, _ in node.next_functions)
    return found


@contextlib.contextmanager
def recorded_backwards(nodes: Sequence[Any]) -> Iterator[list[Returned]]:
    """Record what the backward of each node's Function returns while the block runs."""
    returned: list[Returned] = []
    functions = {node._forward_cls for node in nodes if hasattr(node, "_forward_cls")}
    originals = {f: f.__dict__.get("backward") for f in functions}

    def watched(function: Any) -> Any:
        original = function.backward

        def backward(ctx: Any, *dy: Any) -> Any:
            values = original(ctx, *dy)
            flat = values if isinstance(values, tuple) else (values,)
            returned.append(Returned(function, ctx, flat))
            return values

        return staticmethod(backward)

    for function in functions:
        function.backward = watched(function)
    try:
        yield returned
    finally:
        for function, original in originals.items():
            if original is None:
                del function.backward
            else:
                function.backward = original


@contextlib.contextmanager
def forwards_called_directly() -> Iterator[list[type]]:
    """Collect the Functions whose forward is called by anything but their apply."""
    functions: dict[Any, type] = {
        f.forward.__code__: f
        for f in _subclasses(torch.autograd.Function)
        if _own(f)  # type: ignore[attr-defined]
    }
    direct: list[type] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        # apply runs forward with gradients off; a plain call leaves them on.
        if event == "call" and frame.f_code in functions and torch.is_grad_enabled():
            direct.append(functions[frame.f_code])

    if sys.getprofile() is not None:  # a profiler is at work: leave it alone
        yield direct
        return
    sys.setprofile(watch)
    try:
        yield direct
    finally:
        sys.setprofile(None)


def _own(function: type) -> bool:
    return hasattr(getattr(function, "forward", None), "__code__")


def _subclasses(cls: Any) -> Iterator[Any]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)
