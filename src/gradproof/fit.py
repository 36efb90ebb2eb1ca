"""A reference that does not fit the op is no fault of the op: it is refused before any probe."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from gradproof.passes import OpError, forward, leaves
from gradproof.subject import Subject, output_name
from gradproof.tensors import converted, describe, listed, short


def check_alone(subject: Subject) -> None:
    """Whether the reference runs in float64 and lets gradients through."""
    if subject.reference is None:
        return
    for i, y in enumerate(outputs := _outputs(subject)):
        if y.dtype != torch.float64:
            name = output_name(i, len(outputs))
            raise ValueError(
                f"reference: {name} comes back in {short(y.dtype)} for float64 inputs; let it "
                "compute in the dtype of its inputs, with no cast of its own"
            )
    if not any(y.requires_grad for y in outputs):
        raise ValueError(
            "reference: its output is cut off from the inputs, so it says nothing about gradients; "
            "look for detach, .data, no_grad, numpy or torch.tensor"
        )


def check_beside(subject: Subject) -> None:
    """Whether the reference returns what the op does, as far as number and shape go."""
    if subject.reference is None:
        return
    theirs, mine = _outputs(subject), subject.base.outputs
    if [y.shape for y in theirs] == [y.shape for y in mine]:
        return
    said = " and ".join(
        f"the {who} {_described(ys)}" for who, ys in (("op", mine), ("reference", theirs))
    )
    raise ValueError(f"reference: {said}; they must return the same, in the same order")


def _described(outputs: Sequence[Tensor]) -> str:
    return "returns " + listed([describe(y) for y in outputs])


def _outputs(subject: Subject) -> tuple[Tensor, ...]:
    assert subject.reference is not None
    inputs = leaves(converted(subject.inputs, torch.float64), subject.wrt)
    try:
        return forward(subject.reference.function, inputs)
    except OpError as raised:
        raise ValueError(
            f"reference: raises {raised} when called with {listed(subject.names)}"
        ) from None
    except TypeError as error:
        raise TypeError(str(error).replace("op:", "reference:", 1)) from None
