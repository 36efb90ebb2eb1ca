"""Are sums and row statistics kept wide enough?"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from gradproof.judge import is_right
from gradproof.oracle import Reference, working_dtype
from gradproof.passes import NoGraphError, OpError, draw_like
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.sizing import Axis, accepts, axes, resized
from gradproof.subject import Subject, output_name
from gradproof.tensors import HALF, is_float, largest, number, short

LENGTHS = (16, 256, 4096, 32768)
RUN_PATIENCE = 1.5  # seconds a single run may be predicted to take
COARSE = 2.0  # in half-precision epsilons of the largest entry: no honest op loses as much
GROWN = 2.0  # the same for a sum of terms of one sign, if it grew to that with the length
GROWTH = 3.0


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


def precision(subject: Subject) -> Iterator[Remark]:
    if not isinstance(subject.oracle, Reference):
        yield Note("growth of error is measured against a reference; give one")
        return
    if not is_right(subject):
        yield Note("the values are wrong to begin with, so their precision says nothing")
        return
    for dtype in _dtypes(subject):
        variant = subject.in_dtype(dtype)
        try:
            losses = _losses(variant)
        except (OpError, NoGraphError):
            continue
        if dtype in HALF:
            yield from _accumulators(variant)
        yield from _statistics(variant, losses)
        if dtype in HALF:
            yield from _small_entries(variant)
        yield Tried(f"growth with length and with offset in {short(dtype)}")


def _dtypes(subject: Subject) -> list[torch.dtype]:
    own = {x.dtype for x in subject.inputs if is_float(x)}
    wanted = [torch.bfloat16, torch.float32]
    if own <= {torch.float16}:
        wanted = [torch.float16, torch.float32]
    return [d for d in wanted if d in own or d in HALF or own & set(HALF)]


def _losses(subject: Subject) -> list[Loss]:
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
            errors = (largest_or_inf(t.double() - truth) / unit for t in (value, in_wide, in_own))
            losses.append(Loss(name, unit, *errors))
    return losses


def largest_or_inf(error: Tensor) -> float:
    return float("inf") if bool(torch.isnan(error).any()) else largest(error)


def _accumulators(subject: Subject) -> Iterator[Remark]:
    """Lengthen one axis at a time, all terms of one sign: a half accumulator stalls."""
    positive = subject.at([x.abs() if is_float(x) else x for x in subject.inputs])
    positive = replace(positive, draw_dy=_positive)
    dtype = short(working_dtype(subject.inputs))
    for axis in axes(subject):
        for name, steps in _ladders(positive, axis).items():
            first, last = steps[0][1], max((loss for _, loss in steps), key=lambda s: s.error)
            if last.error > max(GROWN + 8 * last.wide + 2 * last.own, GROWTH * first.error):
                said = ", ".join(f"{number(loss.error)} at {length}" for length, loss in steps)
                yield Finding(
                    "half-precision-accumulator",
                    f"in {dtype} the error of {name} grows with {axis.label(subject)}: {said}, in "
                    f"roundings of the largest entry",
                    f"the same formula in torch loses {number(last.own)}",
                    name,
                )
                return


def _ladders(subject: Subject, axis: Axis) -> dict[str, list[tuple[int, Loss]]]:
    """For each output and gradient, (length, loss) as far as time allows."""
    ladders: dict[str, list[tuple[int, Loss]]] = {}
    rate = 0.0
    for length in LENGTHS:
        if rate * length > RUN_PATIENCE or not accepts(subject, {axis: length}):
            continue
        variant = resized(subject, {axis: length})
        if variant is None:
            continue
        began = time.process_time()
        try:
            losses = _losses(variant)
        except (OpError, NoGraphError):
            break
        rate = (time.process_time() - began) / length
        for loss in losses:
            ladders.setdefault(loss.name, []).append((length, loss))
    return ladders


def _positive(outputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
    return tuple(dy.abs() for dy in draw_like(outputs))


def _statistics(subject: Subject, before: list[Loss]) -> Iterator[Remark]:
    """Add a constant to one input: narrow statistics, or subtracted squares, lose the spread."""
    half = subject.half
    plain = {loss.name: loss for loss in before}
    for i in subject.wrt:
        x = subject.inputs[i]
        if x.numel() < 2:
            continue
        spread = float(x.double().std())
        offset = (60 if half else 1000) * (spread or 1.0)
        moved = (x.double() + offset).to(x.dtype)
        variant = subject.at([*subject.inputs[:i], moved, *subject.inputs[i + 1 :]])
        try:
            after = _losses(variant)
        except (OpError, NoGraphError):
            continue
        for loss in after:
            if loss.error == float("inf"):
                continue  # an overflow, which is the values probe's to say
            limit = COARSE if half else 5e-3 / torch.finfo(torch.float32).eps
            # In units of the gradient without the offset: one that the offset made tiny (as a
            # saturated softmax does) is all rounding. What torch loses in this dtype is no excuse:
            # on a CPU its own statistics are half.
            if loss.name not in plain:
                continue
            error = loss.error * loss.unit / max(loss.unit, plain[loss.name].unit)
            if error <= max(limit + 8 * loss.wide, GROWTH * plain[loss.name].error):
                continue
            name = subject.names[i]
            trap = "half-precision-statistics" if half else "cancellation"
            eps = torch.finfo(x.dtype).eps
            relative = error * eps
            said = f"with {name} + {number(offset)} in {short(x.dtype)}, {loss.name} is off by "
            yield Finding(
                trap,
                said + f"{number(relative)} of its largest entry",
                f"the same formula in float32 is off by {number(loss.wide * eps)}",
                loss.name,
            )
            return


def _small_entries(subject: Subject) -> Iterator[Remark]:
    """Spread one input wide: entries that are differences of nearly equal numbers must survive."""
    assert isinstance(subject.oracle, Reference)
    for i in subject.wrt:
        x = subject.inputs[i]
        if x.numel() < 2:
            continue
        spread = (x.double() * 4).to(x.dtype)
        variant = subject.at([*subject.inputs[:i], spread, *subject.inputs[i + 1 :]])
        try:
            got = variant.base.gradients
            _, truth = subject.oracle.exact(variant.inputs, variant.wrt, variant.dy)
            _, theirs = subject.oracle.at(x.dtype, variant.inputs, variant.wrt, variant.dy)
        except (OpError, NoGraphError):
            continue
        for name, g, t, o in zip(subject.gradient_names, got, truth, theirs, strict=True):
            if g is None:
                continue
            small = (t != 0) & (t.abs() > 1e-7 * largest(t))
            kept = small & ((o.double() - t).abs() < 0.1 * t.abs())
            lost = kept & ((g.double() - t).abs() > 0.9 * t.abs())
            n, of = int(lost.sum()), int(kept.sum())
            if of and n > 0.02 * of and bool((g[lost] == 0).any()):
                said = f"with {subject.names[i]} times 4 in {short(x.dtype)}, "
                said += f"{n} of {of} entries of {name} are lost"
                biggest = number(largest(t[lost]))
                yield Finding(
                    "small-gradients-lost",
                    f"{said}, the largest of them {biggest}",
                    "the same formula in torch in the same dtype keeps them",
                    name,
                )
                return


PRECISION = Probe("precision", "Are sums and statistics kept wide enough?", precision)
