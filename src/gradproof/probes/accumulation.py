"""Do gradients accumulate: microbatches like one batch, .grad left to autograd?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from gradproof.judge import is_right
from gradproof.passes import OpError, backward, forward, leaves, seeded
from gradproof.probe import Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.sizing import Axis, axes
from gradproof.subject import Subject, nearly_equal
from gradproof.tensors import converted, duplicate, is_float, largest, listed, number


def accumulation(subject: Subject) -> Iterator[Remark]:
    yield from _grad_left_alone(subject)
    yield from _twice(subject)
    yield from _microbatches(subject)


def _grad_left_alone(subject: Subject) -> Iterator[Remark]:
    """torch.autograd.grad fills no .grad; whatever is there was put there by the op."""
    mine = leaves(subject.inputs, subject.wrt)
    outputs = forward(subject.op, mine)
    backward(outputs, [mine[i] for i in subject.wrt], subject.dy)
    touched = [subject.names[i] for i in subject.wrt if mine[i].grad is not None]
    if touched:
        said = f"after torch.autograd.grad, which fills no .grad, {listed(touched)} has one"
        yield Finding("writes-into-grad", said)
    yield Tried(".grad is left to autograd")


def _twice(subject: Subject) -> Iterator[Remark]:
    """Two backwards into the same leaves leave twice the gradient."""
    mine = leaves(subject.inputs, subject.wrt)
    for _ in range(2):
        _into_grad(forward(subject.op, mine), subject.dy)
    for i, name, want, scale in zip(
        subject.wrt, subject.gradient_names, subject.base.gradients, subject.scales, strict=True
    ):
        got = mine[i].grad
        if want is None or got is None or nearly_equal(got, 2 * want, 2 * scale, 64):
            continue
        off = number(largest(got.double() - 2 * want.double()))
        said = f"two equal backwards leave .grad of {subject.names[i]} off by {off} from 2·{name}"
        yield Finding("microbatches-disagree", said, about=name)
        return
    yield Tried("twice gives twice")


def _into_grad(outputs: Sequence[Tensor], dy: Sequence[Tensor]) -> None:
    live = [(y, duplicate(d)) for y, d in zip(outputs, dy, strict=True) if y.requires_grad]
    with seeded(1, outputs):
        torch.autograd.backward([y for y, _ in live], [d for _, d in live])


def _microbatches(subject: Subject) -> Iterator[Remark]:
    """One batch in two unequal parts, against the reference in the same two parts."""
    batch = _batch_axis(subject)
    if subject.oracle is None or batch is None or batch.size < 2 or not is_right(subject):
        return
    cut = batch.size // 2 + batch.size % 2
    spans = [slice(0, cut), slice(cut, batch.size)]
    try:
        outputs, got = _in_parts(subject.op, subject, subject.inputs, batch, spans)
        want = list(subject.base.gradients)
        if subject.reference is not None:
            inputs = converted(subject.inputs, torch.float64)
            _, want = _in_parts(subject.reference.function, subject, inputs, batch, spans)
        elif not _same_outputs(subject, batch, outputs):
            return  # a part does not compute what the whole does there: noise, or a mean
    except OpError:
        return
    truth = subject.oracle.truth(subject.inputs, subject.wrt, subject.dy)
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        name, scale, honest = subject.gradient_names[k], subject.scales[k], truth.gradients[k]
        if a is None or b is None or nearly_equal(a, b.to(a.dtype), 4 * scale, 64):
            continue
        if honest is not None and largest(a.double() - b.double()) <= 4 * largest(honest.tolerance):
            continue  # badly conditioned: the whole is no better
        said = f"in microbatches of {cut} and {batch.size - cut}, {name} adds up {_off(a, b)} off"
        yield Finding("microbatches-disagree", said, about=name)
        return
    yield Tried("microbatches like one batch")


def _off(a: Tensor, b: Tensor) -> str:
    return number(largest(a.double() - b.double()))


def _batch_axis(subject: Subject) -> Axis | None:
    """The leading dimension of the first floating input, if it is tied to leading ones only."""
    first = next(i for i, x in enumerate(subject.inputs) if is_float(x))
    for axis in axes(subject):
        if (first, 0) in axis.places:
            return axis if all(dim == 0 for _, dim in axis.places) else None
    return None


def _same_outputs(subject: Subject, batch: Axis, parts: Sequence[Sequence[Tensor]]) -> bool:
    """Whether the outputs of the parts are the rows of the whole's."""
    whole = subject.base.outputs
    if any(not y.ndim or y.shape[0] != batch.size for y in whole):
        return False
    joined = [torch.cat(pieces) for pieces in zip(*parts, strict=True)]
    return all(nearly_equal(a, b, largest(b), 64) for a, b in zip(joined, whole, strict=True))


def _in_parts(
    op: Callable[..., Any],
    subject: Subject,
    inputs: Sequence[Any],
    batch: Axis,
    spans: Sequence[slice],
) -> tuple[list[tuple[Tensor, ...]], list[Tensor | None]]:
    """Outputs of each part; gradients summed, those of batched inputs put together again."""
    batched = {i for i, _ in batch.places}
    parts: list[tuple[Tensor, ...]] = []
    total: list[Any] = [None] * len(subject.wrt)
    for span in spans:
        part = [x[span].clone() if i in batched else x for i, x in enumerate(inputs)]
        mine = leaves(part, subject.wrt)
        outputs = forward(op, mine)
        parts.append(tuple(y.detach() for y in outputs))
        dy = [
            (d[span] if y.shape != d.shape else d).to(y.dtype)
            for y, d in zip(outputs, subject.dy, strict=True)
        ]
        gradients = backward(outputs, [mine[i] for i in subject.wrt], dy)
        for k, (i, g) in enumerate(zip(subject.wrt, gradients, strict=True)):
            if g is None:
                continue
            if i in batched:
                total[k] = g if total[k] is None else torch.cat([total[k], g])
            else:
                total[k] = g if total[k] is None else total[k] + g
    return parts, total


ACCUMULATION = Probe("accumulation", "Do gradients accumulate as autograd expects?", accumulation)
