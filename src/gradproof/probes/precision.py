"""Are sums and row statistics kept wide enough?"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from gradproof.growth import narrow_sums
from gradproof.judge import is_right
from gradproof.loss import Loss, losses_of
from gradproof.passes import NoGraphError, OpError
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.reference import Reference
from gradproof.report import Finding
from gradproof.subject import Subject, output_name
from gradproof.tensors import HALF, draw, is_float, largest, listed, number, short

TINY = 1e-12  # of the offset: a step on which a smooth formula cannot depend
COARSE = 2.0  # in half-precision epsilons of the largest entry: no honest op loses as much
WORSE = 3.0  # times as much as without the offset


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
            losses = losses_of(variant)
        except (OpError, NoGraphError):
            continue
        if dtype in HALF:
            yield from narrow_sums(subject, variant)
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
            after = losses_of(moved) if steady else []
        except (OpError, NoGraphError):
            continue
        for loss in after:
            if loss.name not in steady or loss.error == float("inf"):
                continue  # an overflow is the values probe's to say
            allowed = limit + 8 * loss.wide + 8 * loss.own
            if loss.error > max(allowed, WORSE * plain[loss.name].error):
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
