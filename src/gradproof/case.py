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

    Attributes:
        op: any differentiable callable (`Function.apply`, an `nn.Module`, a custom op, a function).
        inputs: what one call is given. Gradients are asked for the floating tensors that require
            them, or for all floating tensors if none does.
        reference: takes the same arguments as `op` and computes the same in plain torch operations.
            A module's parameters follow the inputs, in the order of `named_parameters`, unless it
            takes no more arguments than there are inputs.
    """

    op: Callable[..., Any]
    inputs: tuple[Any, ...]
    reference: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if not callable(self.op):
            raise TypeError(f"op: expected a callable, got {type(self.op).__name__}")
        if isinstance(self.op, type):
            raise TypeError(
                f"op: you passed the class {self.op.__name__}; pass {_instead(self.op)}"
            )
        if not isinstance(self.inputs, tuple | list):
            raise TypeError(
                f"inputs: expected a tuple of the op's positional arguments, got "
                f"{type(self.inputs).__name__}; write (x,) for a single tensor"
            )
        if not any(is_float(x) for x in self.inputs):
            kinds = ", ".join(map(_kind, self.inputs)) or "nothing"
            raise ValueError(
                f"inputs: no floating-point tensor to differentiate with respect to, got {kinds}; "
                "bind keyword arguments beforehand, with functools.partial or a lambda"
            )
        for position, x in enumerate(self.inputs):
            if isinstance(x, Tensor):
                _check_input(f"inputs[{position}]", x)
        if not any(x.numel() for x in self.inputs if is_float(x)):
            raise ValueError(
                "inputs: every floating tensor is empty, and no gradient can be wrong there; give "
                "some elements (the probe `sizes` tries empty ones by itself)"
            )
        if self.reference is not None and not callable(self.reference):
            raise TypeError(f"reference: expected a callable, got {type(self.reference).__name__}")


def _instead(cls: type) -> str:
    function = issubclass(cls, torch.autograd.Function)
    return f"{cls.__name__}.apply" if function else f"an instance, such as {cls.__name__}(…)"


def _kind(value: Any) -> str:
    plain = isinstance(value, Tensor | bool | int | float | str | None)
    return describe(value) if plain else type(value).__name__


def _check_input(name: str, x: Tensor) -> None:
    if x.is_complex():
        raise TypeError(f"{name}: complex tensors are not supported")
    if x.layout != torch.strided or x.device.type not in ("cpu", "cuda"):
        layout = str(x.layout).removeprefix("torch.")
        raise TypeError(
            f"{name}: expected a strided CPU or CUDA tensor, got {layout} on {x.device}"
        )
    if is_float(x) and bool(torch.isnan(x).any()):
        places = int(torch.isnan(x).sum())
        raise ValueError(f"{name}: NaN at {places} of {x.numel()} places; nothing follows from NaN")


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

    # Where an input asks for its gradient, the others do not get one; a parameter always does.
    asked = any(x.requires_grad for x in case.inputs if is_float(x))
    mine = (p.detach().requires_grad_(asked and p.requires_grad) for p in parameters.values())
    inputs = (*case.inputs, *mine)
    names = (*argument_names(module.forward, given), *parameters)
    return Case(op, inputs, None if case.reference is None else reference), names


def _positional_count(function: Callable[..., Any]) -> int | None:
    try:
        kinds = [p.kind for p in inspect.signature(function).parameters.values()]
    except ValueError:  # a builtin that has no signature
        return None
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
    if isinstance(owner, type) and not owner.__name__.startswith("_"):
        return f"{owner.__name__}.{op.__name__}"
    name: str = getattr(op, "__qualname__", None) or type(op).__name__
    return op.__name__ if name.startswith("_") else name.rpartition("<locals>.")[2]
