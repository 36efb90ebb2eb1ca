"""Are sums and row statistics kept wide enough?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from gradproof.ascent import climbed
from gradproof.judge import is_right
from gradproof.oracle import working_dtype
from gradproof.passes import NoGraphError, OpError, draw_like, forward
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.reference import Reference
from gradproof.report import Finding
from gradproof.sizing import Axis, accepts, axes, elements_of, resized
from gradproof.subject import Subject, output_name
from gradproof.tensors import HALF, converted, draw, is_float, largest, listed, number, short

LENGTHS = (16, 64, 256, 1024, 4096, 32768)  # of the sum: the parts of any block are equal
MOST_LENGTHS = 3  # tried: the longest that are affordable and, if it is off there, the shortest
TINY = 1e-12  # of the offset: a step on which a smooth formula cannot depend
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

    @property
    def coarse(self) -> bool:
        """Whether it is more than honest sums lose, however long."""
        return self.error > GROWN + 8 * self.wide + 4 * self.own


def precision(subject: Subject) -> Iterator[Remark]:
    if not isinstance(subject.oracle, Reference):
        yield Note("growth of error is measured against a reference; give one")
        return
    if not is_right(subject):
        yield Note("the values are wrong to begin with, so their precision says nothing")
        return
    offset = []
    for dtype in _dtypes(subject):
        variant = subject.in_dtype(dtype)
        try:
            losses = _losses(variant)
        except (OpError, NoGraphError):
            continue
        if dtype in HALF:
            yield from _accumulators(subject, variant)
        yield from _statistics(variant, losses)
        if dtype in HALF:
            yield from _small_entries(variant)
        offset.append(short(dtype))
    if offset:
        yield Tried(f"offsets in {listed(offset)}")


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
    return largest(error) if bool(torch.isfinite(error).all()) else float("inf")


def _accumulators(subject: Subject, half: Subject) -> Iterator[Remark]:
    """Lengthen one axis at a time, all terms of one sign: a half accumulator stalls."""
    positive = half.at([x.abs() if is_float(x) else x for x in half.inputs])
    dtype = short(working_dtype(half.inputs))
    reached = []
    for axis in axes(subject):
        ladders = _ladders(positive, axis, _lengths(subject, axis))
        for name, steps in ladders.items():
            first, last = steps[0][1], max((loss for _, loss in steps), key=lambda s: s.error)
            if (
                last.coarse
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


def _climbs(steps: Sequence[tuple[int, Loss]]) -> bool:
    """Whether the error still grows after it has appeared: an index that overflows only jumps."""
    seen = [loss.error for _, loss in steps if loss.error > GROWN]
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
        losses = _losses(_repeated(wide, axis, length // LENGTHS[0]))
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
            losses = _losses(_repeated(start, axis, length // LENGTHS[0]))
        except (OpError, NoGraphError):
            continue  # what it does at the shorter ones still counts
        for loss in losses:
            if loss.error < float("inf"):  # an overflow is the values probe's to say
                ladders.setdefault(loss.name, []).insert(0, (length, loss))
        grown = grown or any(loss.coarse for loss in losses)
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


def _statistics(subject: Subject, before: list[Loss]) -> Iterator[Remark]:
    """Add a constant to an input where the answer does not change: neither may the op's."""
    half = subject.half
    plain = {loss.name: loss for loss in before}
    limit = COARSE if half else 5e-3 / torch.finfo(torch.float32).eps
    for i in subject.wrt:
        x = subject.inputs[i]
        if x.numel() < 2:
            continue
        offset = (60 if half else 1000) * (float(x.double().std()) or 1.0)
        moved = _with_input(subject, i, (x.double() + offset).to(x.dtype))
        try:
            there = moved.inputs[i].double()
            nudge = TINY * draw(x.shape, torch.float64, x.device, 60).sign()
            # Rounded so far from 0, entries may be equal: which is the largest has no answer then.
            steady = _unchanged(subject, moved, _with_input(moved, i, there - offset))
            steady &= _unchanged(subject, moved, _with_input(moved, i, there + nudge * offset))
            after = _losses(moved) if steady else []
        except (OpError, NoGraphError):
            continue
        for loss in after:
            if loss.name not in steady or loss.error == float("inf"):
                continue  # an overflow is the values probe's to say
            allowed = limit + 8 * loss.wide + 8 * loss.own
            if loss.error > max(allowed, GROWTH * plain[loss.name].error):
                eps = torch.finfo(x.dtype).eps
                yield Finding(
                    "half-precision-statistics" if half else "cancellation",
                    f"with {subject.names[i]} + {number(offset)} in {short(x.dtype)}, {loss.name} "
                    f"is off by {number(loss.error * eps)} of its largest entry; the truth is the "
                    "same with and without",
                    f"the same formula in torch is off by {number(loss.own * eps)}",
                    loss.name,
                )
                return


def _with_input(subject: Subject, i: int, value: Tensor) -> Subject:
    return subject.at([*subject.inputs[:i], value, *subject.inputs[i + 1 :]])


def _unchanged(subject: Subject, a: Subject, b: Subject) -> set[str]:
    """The outputs and gradients whose truth is the same for both, with the dy of `subject`."""
    assert isinstance(subject.oracle, Reference)
    names = [output_name(i, len(subject.dy)) for i in range(len(subject.dy))]
    one = subject.oracle.exact(a.inputs, a.wrt, subject.dy)
    two = subject.oracle.exact(b.inputs, b.wrt, subject.dy)
    return {
        name
        for name, s, t in zip(
            (*names, *subject.gradient_names),
            (*one[0], *one[1]),
            (*two[0], *two[1]),
            strict=True,
        )
        if largest(s - t) <= 0.05 * largest(t)
    }


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
