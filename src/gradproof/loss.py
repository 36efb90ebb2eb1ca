"""How much of a result is lost to rounding, beside what the same formula in torch loses."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradproof.oracle import working_dtype
from gradproof.passes import OpError
from gradproof.reference import Reference
from gradproof.subject import Subject, output_name
from gradproof.tensors import largest


@dataclass(frozen=True)
class Loss:
    """The largest error of one output or gradient, in ε·(largest entry).

    wide, own: what the same formula in torch loses, in fp32 and in the op's own dtype.
    unit: one ε·(largest entry).
    """

    name: str
    unit: float
    error: float
    wide: float
    own: float


def losses_of(subject: Subject) -> list[Loss]:
    """Errors of every output and gradient, and those of the same formula in torch."""
    assert isinstance(subject.oracle, Reference)
    reference = subject.oracle
    base, dy = subject.base, subject.dy
    outputs, gradients = reference.exact(subject.inputs, subject.wrt, dy)
    wide = reference.at(torch.float32, subject.inputs, subject.wrt, dy)
    try:
        own = reference.at(working_dtype(subject.inputs), subject.inputs, subject.wrt, dy)
    except OpError:  # torch has no such form
        own = wide
    names = [output_name(i, len(outputs)) for i in range(len(outputs))]
    losses = []
    for name, value, truth, in_wide, in_own in zip(
        (*names, *subject.gradient_names),
        (*base.outputs, *base.gradients),
        (*outputs, *gradients),
        (*wide[0], *wide[1]),
        (*own[0], *own[1]),
        strict=True,
    ):
        if value is None or value.shape != truth.shape:
            continue
        unit = torch.finfo(value.dtype).eps * largest(truth)
        if unit > 0:
            errors = (_largest_or_inf(t.double() - truth) / unit for t in (value, in_wide, in_own))
            losses.append(Loss(name, unit, *errors))
    return losses


def _largest_or_inf(error: Tensor) -> float:
    return largest(error) if bool(torch.isfinite(error).all()) else float("inf")
