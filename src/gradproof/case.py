"""What is put to the proof: an op, one set of inputs, and the formula it should equal."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradproof.tensors import describe, is_float


@dataclass(frozen=True)
class Case:
    """An op, the positional inputs of one call, and optionally the same formula in torch.

    op: any differentiable callable (`Function.apply`, an `nn.Module`, a custom op, a function).
    inputs: what one call is given. Gradients are asked for the floating tensors that require them,
        or for all floating tensors if none does.
    reference: takes the same arguments as `op` and computes the same in plain torch operations.
    """

    op: Callable[..., Any]
    inputs: tuple[Any, ...]
    reference: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not callable(self.op):
            raise TypeError(f"op: expected a callable, got {type(self.op).__name__}")
        if not isinstance(self.inputs, tuple | list):
            raise TypeError(
                f"inputs: expected a tuple of the op's positional arguments, got "
                f"{type(self.inputs).__name__}; write (x,) for a single tensor"
            )
        if not any(is_float(x) for x in self.inputs):
            kinds = ", ".join(describe(x) for x in self.inputs) or "nothing"
            raise ValueError(
                f"inputs: no floating-point tensor to differentiate with respect to, got {kinds}"
            )
        for position, x in enumerate(self.inputs):
            if isinstance(x, Tensor) and x.is_complex():
                raise TypeError(f"inputs[{position}]: complex tensors are not supported")
        if self.reference is not None and not callable(self.reference):
            raise TypeError(f"reference: expected a callable, got {type(self.reference).__name__}")


def with_parameters_as_inputs(case: Case) -> tuple[Case, tuple[str, ...]]:
    """A module's parameters become inputs like any other; returns the argument names too."""
    module = case.op
    if not isinstance(module, torch.nn.Module):
        return case, argument_names(case.op, len(case.inputs))
    parameters = dict(module.named_parameters())
    given = len(case.inputs)

    def op(*arguments: Any) -> Any:
        replaced = dict(zip(parameters, arguments[given:], strict=True))
        return torch.func.functional_call(module, replaced, arguments[:given])

    def reference(*arguments: Any) -> Any:
        assert case.reference is not None
        takes = _positional_count(case.reference)
        return case.reference(*arguments[: given if takes == given else None])

    inputs = (*case.inputs, *(p.detach() for p in parameters.values()))
    names = (*argument_names(module.forward, given), *parameters)
    return Case(op, inputs, None if case.reference is None else reference), names


def _positional_count(function: Callable[..., Any]) -> int | None:
    kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return None
    return sum(k in (k.POSITIONAL_ONLY, k.POSITIONAL_OR_KEYWORD) for k in kinds)


def argument_names(op: Callable[..., Any], how_many: int) -> tuple[str, ...]:
    """The names `op` gives its positional arguments, `input 0` and so on where it has none."""
    fallback = tuple(f"input {i}" for i in range(how_many))
    try:
        names = _signature_names(op)
    except (TypeError, ValueError):
        return fallback
    return tuple(names[:how_many]) if len(names) >= how_many else fallback


def _signature_names(op: Callable[..., Any]) -> list[str]:
    owner = getattr(op, "__self__", None)
    if isinstance(owner, type) and issubclass(owner, torch.autograd.Function):
        names = list(inspect.signature(owner.forward).parameters)
        # With setup_context, forward has no ctx in front.
        plain = owner.setup_context is torch.autograd.Function.setup_context
        return names[1:] if plain else names
    parameters = inspect.signature(op).parameters.values()
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return []
    return [p.name for p in parameters]


def op_name(op: Callable[..., Any]) -> str:
    """How a person would write the op: `Broken.apply`, `gelu`, `RMSNorm`."""
    if isinstance(op, functools.partial):
        return op_name(op.func)
    owner = getattr(op, "__self__", None)
    if isinstance(owner, type):
        return f"{owner.__name__}.{op.__name__}"
    name: str = getattr(op, "__qualname__", None) or type(op).__name__
    return name.rpartition("<locals>.")[2]
