"""Are the values right, in each dtype, with large and special inputs, with each flag?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from gradproof.explain import nonlinear_in_dy
from gradproof.judge import Verdict, judge, narrowed
from gradproof.oracle import working_dtype
from gradproof.passes import NoGraphError, OpError
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.subject import Subject
from gradproof.tensors import draw, is_float, largest, listed, short

TINY = 1e-12  # a step away from a special value, on which a smooth formula cannot depend
GROSS = 0.02  # of the largest entry: on extreme inputs only gross errors are held against an op


def values(subject: Subject) -> Iterator[Remark]:
    if subject.oracle is None:
        yield from _without_a_truth(subject)
        return
    verdict = judge(subject)
    if (finding := narrowed(subject, verdict.done)) is not None:
        yield finding
    yield from verdict.findings()
    if not verdict.compared:
        yield Note("the truth is finite nowhere on these inputs: nothing could be compared")
        return
    if not verdict.right:
        return
    yield Tried(f"against {subject.oracle.name}")
    yield from nonlinear_in_dy(subject, halved=False)
    yield from _other_dtypes(subject)
    if subject.reference is not None:
        yield from _flags(subject)
        yield from _large(subject)
        yield from _special(subject)
        yield from _ignored_targets(subject)


def _without_a_truth(subject: Subject) -> Iterator[Remark]:
    yield Note("no reference, and finite differences need float32 or float64: only linearity in dy")
    yield from nonlinear_in_dy(subject)
    yield Tried("linear in dy")


def _other_dtypes(subject: Subject) -> Iterator[Remark]:
    """The op as it is in its other dtypes; an op may refuse one."""
    if subject.reference is None:
        return
    own = {x.dtype for x in subject.inputs if is_float(x)}
    right = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        if dtype in own:
            continue
        variant = subject.in_dtype(dtype)
        verdict = _attempt(variant, f"in {short(dtype)}")
        if isinstance(verdict, OpError):
            where = " by Triton's interpreter" if "Interpreter" in str(verdict) else ""
            yield Note(f"{short(dtype)} is not taken{where} ({verdict})")
            continue
        if (finding := narrowed(variant, verdict.done)) is not None:
            yield finding
        for finding in verdict.findings(f"in {short(dtype)}"):
            own_name = " and ".join(sorted(short(d) for d in own))
            yield replace(finding, trap="wrong-in-some-dtypes", beside=f"in {own_name} it is right")
        right += [short(dtype)] if verdict.right else []
    if right:
        yield Tried(f"also in {listed(right)}")


def _flags(subject: Subject) -> Iterator[Remark]:
    for i, value in enumerate(subject.inputs):
        if not isinstance(value, bool):
            continue
        situation = f"with {subject.names[i]}={not value}"
        variant = subject.at([*subject.inputs[:i], not value, *subject.inputs[i + 1 :]])
        verdict = _attempt(variant, situation)
        if isinstance(verdict, OpError):
            yield Note(f"{situation}: {verdict}")
        else:
            yield from verdict.findings(situation)
            yield Tried(situation)


def _large(subject: Subject) -> Iterator[Remark]:
    for i in subject.wrt:
        factors = [64.0] if _of_both_signs(subject.inputs[i]) else [64.0, -64.0]
        for factor in factors if subject.half else [*factors, 1e5]:
            situation = f"with {subject.names[i]} times {factor:g}"
            found = list(_gross(_replaced(subject, i, subject.inputs[i] * factor), situation))
            yield from found
            if found:
                return
    yield Tried("large inputs")


def _of_both_signs(x: Tensor) -> bool:
    """Whether large values of either sign are among the large values of x."""
    return min(float(x.max()), -float(x.min())) > 0.25 * largest(x)


def _special(subject: Subject) -> Iterator[Remark]:
    for i in subject.wrt:
        x = subject.inputs[i]
        for label, value in (("0", 0.0), ("−inf", -torch.inf)):
            for where, mask in (("some", _some(x)), ("a row of", _a_row(x))):
                situation = f"special values: with {where} {subject.names[i]} set to {label}"
                variant = _replaced(subject, i, torch.where(mask, value, x))
                if not _smooth(variant, i, mask, subject.dy):
                    continue
                found = [replace(f, trap="special-values") for f in _gross(variant, situation)]
                yield from found
                if found:
                    return
    yield Tried("zeros and infinities")


def _smooth(subject: Subject, i: int, mask: Tensor, dy: Sequence[Tensor]) -> bool:
    """Whether the reference has one answer for these inputs: finite, and no kink or tie there."""
    assert subject.reference is not None
    x = subject.inputs[i]
    signs = draw(x.shape, torch.float64, x.device, 60).sign()
    moved = torch.where(mask, x.double() + TINY * signs, x.double())
    compute = torch.float32 if working_dtype(subject.inputs) != torch.float64 else torch.float64
    try:
        outputs, gradients = subject.reference.at(compute, subject.inputs, subject.wrt, dy)
        exact = subject.reference.exact(subject.inputs, subject.wrt, dy)[1]
        beside = subject.reference.exact(_replaced(subject, i, moved).inputs, subject.wrt, dy)[1]
    except (OpError, NoGraphError):
        return False
    finite = all(bool(torch.isfinite(t).all()) for t in (*outputs, *gradients))
    return finite and all(
        largest(a - b) <= 1e-3 * largest(a) for a, b in zip(exact, beside, strict=True)
    )


def _ignored_targets(subject: Subject) -> Iterator[Remark]:
    """Where the reference takes −100 among integer inputs, it marks an entry to be ignored."""
    for i, x in enumerate(subject.inputs):
        if not (isinstance(x, Tensor) and x.dtype in (torch.int32, torch.int64) and x.numel() > 1):
            continue
        if bool((x < 0).any()) or not _ignores(subject, i):
            continue
        situation = f"with a third of {subject.names[i]} set to −100"
        verdict = _attempt(_replaced(subject, i, _third_ignored(x)), situation)
        if isinstance(verdict, OpError):
            yield Note(f"{situation}: {verdict}")
            continue
        for finding in verdict.findings(situation):
            yield replace(finding, trap="ignored-targets")
        yield Tried("ignored targets")


def _ignores(subject: Subject, i: int) -> bool:
    """Asked of the reference on the CPU, where a bad index raises instead of killing the device.

    Indexing counts −100 from the end where there are a hundred classes: a reference that ignores it
    gives those rows no gradient at all.
    """
    assert subject.reference is not None
    inputs = [x.cpu() if isinstance(x, Tensor) else x for x in subject.inputs]
    inputs[i] = _third_ignored(inputs[i])
    try:
        dy = [torch.ones(y.shape) for y in subject.base.outputs]
        _, gradients = subject.reference.exact(inputs, subject.wrt, dy)
    except (OpError, NoGraphError, RuntimeError):
        return False
    ignored = inputs[i] < 0
    rows = [g for g in gradients if g.shape[: ignored.ndim] == ignored.shape]
    return bool(rows) and all(not bool((g[ignored] != 0).any()) for g in rows)


def _third_ignored(x: Tensor) -> Tensor:
    marked = x.clone()
    marked.view(-1)[::3] = -100
    return marked


def _gross(subject: Subject, situation: str) -> Iterator[Any]:
    verdict = _attempt(subject, situation, GROSS)
    if isinstance(verdict, Verdict):
        yield from verdict.findings(situation)


def _attempt(subject: Subject, situation: str, gross: float = 0.0) -> Verdict | OpError:
    try:
        return judge(subject, situation=situation, gross=gross)
    except OpError as raised:
        return raised


def _replaced(subject: Subject, i: int, value: Tensor) -> Subject:
    return subject.at([*subject.inputs[:i], value, *subject.inputs[i + 1 :]])


def _some(x: Tensor) -> Tensor:
    mask = torch.zeros_like(x, dtype=torch.bool)
    mask.view(-1)[1::3] = True
    return mask


def _a_row(x: Tensor) -> Tensor:
    mask = torch.zeros_like(x, dtype=torch.bool)
    if x.ndim and x.numel():
        mask[0] = True
    return mask


VALUES = Probe("values", "Are outputs and gradients right?", values)
