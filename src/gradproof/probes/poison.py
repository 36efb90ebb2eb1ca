"""Does the op read only what was written, and touch only what is its own?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from gradproof.allocation import Poisoned, surrounded
from gradproof.passes import Pass, Raised, backward, forward, leaves
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.sizing import ragged
from gradproof.subject import Subject, output_name
from gradproof.tensors import count, is_float, listed, number, same_bits

POISON = 2.0**12  # exact in every dtype, and larger than anything an honest result holds here


def poison(subject: Subject) -> Iterator[Remark]:
    found: list[Finding] = []
    for situation, variant in ragged(subject):
        try:
            found = [*_unwritten(variant, situation), *_beyond(variant, situation)]
        except Raised as raised:
            yield Note(f"{situation}: {raised}")
            continue
        if found:
            break
    yield from found
    yield Tried("fresh memory and what lies around the inputs is never seen")


def _unwritten(subject: Subject, situation: str) -> Iterator[Finding]:
    clean, overruns = _poisoned(subject, 0.0)
    if overruns:
        yield Finding(
            "writes-past-end", f"{situation}the op overruns {count(overruns, 'buffer')} of its own"
        )
    with_nan, _ = _poisoned(subject, torch.nan)
    with_number, _ = _poisoned(subject, POISON)
    for name, zero, nan, high in _results(subject, clean, with_nan, with_number):
        changed = (zero != high) & ~(torch.isnan(zero) & torch.isnan(high))
        changed |= torch.isnan(nan) & ~torch.isnan(zero)
        places = int(changed.sum())
        if not places:
            continue
        at = f"{situation}{name} at {places} of {zero.numel()} places"
        rise = (high.double() - zero.double())[changed]
        added = (rise - POISON).abs() < 1e-2 * POISON
        if bool((high[changed] == POISON).all() & (zero[changed] == 0).all()):
            yield Finding("unwritten-gradient", f"{at} is what fresh memory held", about=name)
        elif bool(added.any()):
            said = f"{at} is a value plus what fresh memory held"
            yield Finding("unzeroed-accumulator", said, about=name)
        else:
            said = f"{at} changes with what fresh memory held"
            yield Finding("uninitialised-memory", said, about=name)


def _poisoned(subject: Subject, value: float) -> tuple[Pass, int]:
    mine = leaves(subject.inputs, subject.wrt)
    with Poisoned(value) as mode:
        outputs = forward(subject.op, mine)
        gradients = backward(outputs, [mine[i] for i in subject.wrt], subject.dy)
    return Pass(tuple(y.detach() for y in outputs), gradients), mode.broken_fences


def _beyond(subject: Subject, situation: str) -> Iterator[Finding]:
    """Each input and dy inside a buffer of zeros, NaN, then large numbers: none may be seen."""
    zeros, *others = (_surrounded(subject, guard) for guard in (0.0, torch.nan, POISON))
    for what, other in zip(("NaN", number(POISON)), others, strict=True):
        affected = [name for name, a, b in _results(subject, zeros, other) if not same_bits(a, b)]
        if affected:
            yield Finding(
                "reads-past-end",
                f"{situation}{listed(affected)} changes when {what} stands around the inputs and dy",
                "with zeros around them it is another",
            )
            return


def _surrounded(subject: Subject, guard: float) -> Pass:
    inputs = [surrounded(x, guard) if is_float(x) else x for x in subject.inputs]
    for i in subject.wrt:
        inputs[i].requires_grad_()
    with Poisoned(0.0):
        outputs = forward(subject.op, inputs)
        dy = [surrounded(d, guard) for d in subject.dy]
        gradients = backward(outputs, [inputs[i] for i in subject.wrt], dy, copy_dy=False)
    return Pass(tuple(y.detach() for y in outputs), gradients)


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


PROBE = Probe("poison", "Does the op touch only memory that is written, and its own?", poison)
