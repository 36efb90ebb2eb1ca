"""Sums kept in half precision, found by an error that grows with their length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from gradproof.ascent import climbed
from gradproof.loss import Loss, losses_of
from gradproof.oracle import working_dtype
from gradproof.passes import NoGraphError, OpError, draw_like, forward
from gradproof.probe import Remark, Tried
from gradproof.reference import Reference
from gradproof.report import Finding
from gradproof.sizing import Axis, accepts, axes, elements_of, resized
from gradproof.subject import Subject
from gradproof.tensors import converted, is_float, listed, number, short

LENGTHS = (16, 64, 256, 1024, 4096, 32768)  # of the sum: the parts of any block are equal
MOST_LENGTHS = 3  # tried: the longest that are affordable and, if it is off there, the shortest
COARSE = 2.0  # in half-precision epsilons of the largest entry, for a sum of terms of one sign
GROWTH = 3.0  # times as much as the shortest sum loses


def narrow_sums(subject: Subject, half: Subject) -> Iterator[Remark]:
    """Lengthen one axis at a time, all terms of one sign: a half accumulator stalls."""
    positive = half.at([x.abs() if is_float(x) else x for x in half.inputs])
    dtype = short(working_dtype(half.inputs))
    reached = []
    for axis in axes(subject):
        ladders = _ladders(positive, axis, _lengths(subject, axis))
        for name, steps in ladders.items():
            first, last = steps[0][1], max((loss for _, loss in steps), key=lambda s: s.error)
            if (
                _coarse(last)
                and last.error > GROWTH * first.error
                and (_climbs(steps) or _right_when_wide(positive, axis, name, steps))
            ):
                said = ", ".join(f"{number(loss.error)} at {length}" for length, loss in steps)
                yield Finding(
                    "half-precision-accumulator",
                    f"in {dtype} the error of {name} grows with {axis.label(subject)}: {said}, in "
                    f"roundings of the largest entry",
                    f"the same formula in torch loses {number(last.own)}",
                    name,
                )
                return
        longest = max((steps[-1][0] for steps in ladders.values()), default=0)
        reached += [f"{axis.label(subject)} up to {longest}"] if longest > LENGTHS[0] else []
    if reached:
        yield Tried(f"growth in {dtype} with {listed(reached)}")


def _coarse(loss: Loss) -> bool:
    """Whether it is more than honest sums lose, however long."""
    return loss.error > COARSE + 8 * loss.wide + 4 * loss.own


def _climbs(steps: Sequence[tuple[int, Loss]]) -> bool:
    """Whether the error still grows after it has appeared: an index that overflows only jumps."""
    seen = [loss.error for _, loss in steps if loss.error > COARSE]
    return len(seen) > 1 and seen[-1] > 1.5 * seen[0]


def _right_when_wide(
    subject: Subject, axis: Axis, name: str, steps: Sequence[tuple[int, Loss]]
) -> bool:
    """Whether float32 inputs cure it at the worst length; where they are refused, so be it."""
    length, worst = max(steps, key=lambda step: step[1].error)
    wide = _start(subject.in_dtype(torch.float32), axis)
    if wide is None:
        return True
    try:
        losses = losses_of(_repeated(wide, axis, length // LENGTHS[0]))
    except (OpError, NoGraphError):
        return True
    off = next((loss.error * loss.unit for loss in losses if loss.name == name), 0.0)
    return off < 0.25 * worst.error * worst.unit


def _start(subject: Subject, axis: Axis) -> Subject | None:
    """The axis at its shortest, every dy positive."""
    start = resized(subject, {axis: LENGTHS[0]})
    return None if start is None else replace(start, draw_dy=_positive)


def _ladders(
    positive: Subject, axis: Axis, lengths: Sequence[int]
) -> dict[str, list[tuple[int, Loss]]]:
    """For each output and gradient, (length, loss), the longest last.

    Nothing has grown where the longest sum is as good as any: then the others are not run.
    """
    ladders: dict[str, list[tuple[int, Loss]]] = {}
    start, grown = _start(positive, axis), False
    if start is None:
        return ladders
    for length in reversed(lengths):
        try:
            losses = losses_of(_repeated(start, axis, length // LENGTHS[0]))
        except (OpError, NoGraphError):
            continue  # what it does at the shorter ones still counts
        for loss in losses:
            if loss.error < float("inf"):  # an overflow is the values probe's to say
                ladders.setdefault(loss.name, []).insert(0, (length, loss))
        grown = grown or any(_coarse(loss) for loss in losses)
        if not grown:
            break
    return ladders


def _lengths(subject: Subject, axis: Axis) -> list[int]:
    """Of the lengths that are affordable, the first and the last.

    One alone says nothing of growth: then there are none.
    """
    climb = climbed(subject, axis).uncounted
    dared = [
        n
        for n in LENGTHS
        if climb.allows(elements_of(subject, {axis: n})) and accepts(subject, {axis: n})
    ]
    return [dared[0], *dared[1:][1 - MOST_LENGTHS :]] if dared[1:] else []


def _repeated(subject: Subject, axis: Axis, times: int) -> Subject:
    """The axis so many times as long, by repeating it, and dy with it.

    Equal terms are rounded alike, so that the error of a narrow sum grows as their number does and
    not as its root.
    """
    inputs = list(subject.inputs)
    for i, dim in axis.places:
        inputs[i] = inputs[i].repeat([times if d == dim else 1 for d in range(inputs[i].ndim)])
    return replace(subject.at(inputs), draw_dy=partial(_repeated_dy, _dy_of_reference(subject)))


def _dy_of_reference(subject: Subject) -> tuple[Tensor, ...]:
    """dy for the outputs as the reference has them, which costs less than a run of the op."""
    assert isinstance(subject.oracle, Reference)
    inputs = converted(subject.inputs, torch.float64)
    return subject.draw_dy(forward(subject.oracle.function, inputs))


def _repeated_dy(start: Sequence[Tensor], outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """dy for longer outputs: the short one repeated, or all of one sign where that does not fit."""
    dy = []
    for one, y, fallback in zip(start, outputs, _positive(outputs), strict=True):
        times = [n // max(m, 1) for m, n in zip(one.shape, y.shape, strict=True)]
        longer = one.repeat(times) if times else one
        dy.append(longer.to(y) if longer.shape == y.shape else fallback)
    return tuple(dy)


def _positive(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(dy.abs() for dy in draw_like(outputs))
