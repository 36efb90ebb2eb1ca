"""Does the op read only what was written, and touch only what is its own?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor

from gradproof.allocation import Poisoned, fenced
from gradproof.passes import OpError, Pass, backward, forward
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.sizing import unseen
from gradproof.subject import Subject, nearly_equal, output_name
from gradproof.tensors import count, is_float, largest, listed, number

REPEATS_ON_GPU = 4
HIGH = 2.0**12  # exact in every dtype, and larger than anything an honest result holds here
POISONS = (torch.nan, HIGH)


def poison(subject: Subject) -> Iterator[Remark]:
    for situation, variant in _shapes(subject):
        try:
            if _untouched(variant):
                continue
            clean, overruns = _everywhere(variant)
            found = [*_overrun(situation, overruns)]
            found += _unwritten(variant, situation, clean)
            found += _beyond(variant, situation, clean)
            if found and not _repeatable(variant, clean):
                yield Note("the same call gives different results anyway: see determinism")
                return
        except OpError as raised:
            yield Note(f"{situation}{raised}")
            continue
        yield from found
        if found:
            return
    yield Tried("what fresh memory and the surroundings of tensors hold is never seen")


def _shapes(subject: Subject) -> Iterator[tuple[str, Subject]]:
    yield "", subject
    yield from unseen(subject)  # not before: what the first finds may make it useless


def _untouched(subject: Subject) -> bool:
    """Whether both poisons everywhere change nothing, so that nothing need be told apart."""
    passes = [_everywhere(subject, fill=value, margin=value) for value in POISONS]
    return not any(overruns for _, overruns in passes) and all(
        _agree(subject, subject.base, done) for done, _ in passes
    )


def _repeatable(subject: Subject, clean: Pass) -> bool:
    """Whether clean memory and poisoned memory give their own result each, and again the same.

    A race differs from run to run, whatever memory holds.
    """
    poisoned = [_everywhere(subject, value, value)[0] for value in POISONS]
    for _ in range(REPEATS_ON_GPU if subject.cuda else 1):
        again = [_everywhere(subject, value, value)[0] for value in (0.0, *POISONS)]
        if not all(map(partial(_agree, subject), (clean, *poisoned), again)):
            return False
    return True


def _agree(subject: Subject, one: Pass, other: Pass) -> bool:
    return all(_same(a, b) for _, a, b in _results(subject, one, other))


def _same(a: Tensor, b: Tensor) -> bool:
    """Equal but for the order of a sum: atomics move the last bits, poison moves everything."""
    return nearly_equal(a, b, largest(a), a.numel() + 4096)


def _everywhere(subject: Subject, fill: float = 0.0, margin: float = 0.0) -> tuple[Pass, int]:
    """One pass with every tensor fenced by `margin`; also how many of the op's own it overran."""
    inputs = [fenced(x, margin)[0] if is_float(x) and x.numel() else x for x in subject.inputs]
    inputs = [x.requires_grad_() if i in subject.wrt else x for i, x in enumerate(inputs)]
    dy = [fenced(d, margin)[0] if d.numel() else d for d in subject.dy]
    with Poisoned(fill, margin) as mode:
        outputs = forward(subject.op, inputs)
        gradients = backward(outputs, [inputs[i] for i in subject.wrt], dy, copy_dy=False)
    return Pass(tuple(y.detach().clone() for y in outputs), gradients), mode.overruns


def _overrun(situation: str, overruns: int) -> Iterator[Finding]:
    if overruns:
        said = f"{situation}the op writes past the end of {count(overruns, 'tensor')} of its own"
        yield Finding("writes-past-end", said)


def _unwritten(subject: Subject, situation: str, clean: Pass) -> Iterator[Finding]:
    with_nan, _ = _everywhere(subject, fill=torch.nan)
    with_number, _ = _everywhere(subject, fill=HIGH)
    for name, zero, nan, high in _results(subject, clean, with_nan, with_number):
        if _same(zero, high) and _same(zero, nan):
            continue
        changed = (zero != high) & ~(torch.isnan(zero) & torch.isnan(high))
        changed |= torch.isnan(nan) & ~torch.isnan(zero)
        places = int(changed.sum())
        at = f"{situation}{name} at {places} of {zero.numel()} places"
        rise = (high.double() - zero.double())[changed]
        added = (rise - HIGH).abs() < 1e-2 * HIGH
        if bool((high[changed] == HIGH).all() & (zero[changed] == 0).all()):
            yield Finding("unwritten-gradient", f"{at} is what fresh memory held", about=name)
        elif bool(added.any()):
            said = f"{at} is a value plus what fresh memory held"
            yield Finding("unzeroed-accumulator", said, about=name)
        else:
            said = f"{at} changes with what fresh memory held"
            yield Finding("uninitialised-memory", said, about=name)


def _beyond(subject: Subject, situation: str, clean: Pass) -> Iterator[Finding]:
    for what, margin in (("NaN", torch.nan), (number(HIGH), HIGH)):
        other, _ = _everywhere(subject, margin=margin)
        affected = [name for name, a, b in _results(subject, clean, other) if not _same(a, b)]
        if affected:
            said = f"{situation}{listed(affected)} changes when {what} stands around every tensor"
            yield Finding("reads-past-end", said, "with zeros around them it is another")
            return


def _results(subject: Subject, *passes: Pass) -> Iterator[tuple[Any, ...]]:
    """(name, value in the first pass, in the second, …) of every output and gradient."""
    names = [output_name(i, len(passes[0].outputs)) for i in range(len(passes[0].outputs))]
    every = zip(
        (*names, *subject.gradient_names),
        *((*p.outputs, *p.gradients) for p in passes),
        strict=True,
    )
    for name, *values in every:
        if all(isinstance(v, Tensor) for v in values):
            yield (name, *values)


POISON = Probe("poison", "Does the op touch only memory that is written, and its own?", poison)
