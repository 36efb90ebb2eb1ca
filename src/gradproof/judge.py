"""One run of the op held against the truth."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from gradproof.explain import Wrong, explain
from gradproof.oracle import Truth, working_dtype
from gradproof.passes import OpError, Pass
from gradproof.report import Finding
from gradproof.subject import Subject, output_name
from gradproof.tensors import any_empty, describe, largest, short
from gradproof.tolerance import Mismatch, compare

NOTHING = 1e-2  # of the order of 1: what a result that should be 0 is measured by


@dataclass(frozen=True)
class Verdict:
    """What is wrong with one run; all empty if it is right as far as is known.

    missing: names of inputs whose gradient is None although it is not zero.
    compared: whether the truth is known at any place at all.
    """

    done: Pass
    dy: tuple[Tensor, ...]
    outputs: tuple[tuple[str, Mismatch | str], ...] = ()
    gradients: tuple[Wrong, ...] = ()
    missing: tuple[str, ...] = ()
    compared: bool = True

    @property
    def right(self) -> bool:
        return not (self.outputs or self.gradients or self.missing)

    @property
    def wrong_names(self) -> tuple[str, ...]:
        names = [name for name, _ in self.outputs]
        return (*names, *(wrong.name for wrong in self.gradients), *self.missing)

    def findings(self, situation: str = "") -> list[Finding]:
        """One finding for each wrong output or gradient."""
        where = f"{situation}, " if situation else ""
        found = [
            Finding(
                "missing-gradient", f"{where}{name} is None; by the truth it is not 0", "", name
            )
            for name in self.missing
        ]
        for name, mismatch in self.outputs:
            found.append(
                Finding(
                    self._forward_trap(mismatch, situation),
                    f"{where}{name} is {mismatch}",
                    "",
                    name,
                )
            )
        return found + [explain(wrong) for wrong in self.gradients]

    def _forward_trap(self, mismatch: Mismatch | str, situation: str) -> str:
        if isinstance(mismatch, str):
            return "wrong-forward"
        if not mismatch.finite:
            return "special-values" if situation.startswith("special") else "overflow"
        return "wrong-forward"


def judge(subject: Subject, situation: str = "", gross: float = 0.0) -> Verdict:
    """Run `subject` and compare with its oracle; errors below `gross` of the scale are let pass.

    Raises OpError where the op raises, NoTruthError where its reference does, if that does too.
    """
    assert subject.oracle is not None
    try:
        dy = subject.dy
    except OpError:
        if subject.reference is not None:
            subject.reference.check_takes(subject.inputs, subject.wrt)
        raise
    truth = subject.oracle.truth(subject.inputs, subject.wrt, dy)
    verdict = _verdict(subject, truth, situation, gross)
    if not verdict.right and subject.reference is not None and any_empty(subject.inputs):
        # What was taken for granted, the reference may not live up to either.
        truth = subject.reference.computed(subject.inputs, subject.wrt, dy)
        verdict = _verdict(subject, truth, situation, gross)
    return verdict


def _verdict(subject: Subject, truth: Truth, situation: str, gross: float) -> Verdict:
    done, dy = subject.base, subject.dy
    wrong_outputs: list[tuple[str, Mismatch | str]] = []
    for i, (y, expected) in enumerate(zip(done.outputs, truth.outputs, strict=True)):
        if expected is None:
            continue
        name = output_name(i, len(done.outputs))
        if y.shape != expected.value.shape:
            wrong_outputs.append((name, f"{describe(y)}, expected {list(expected.value.shape)}"))
        elif (found := compare(y, expected)) and _counts(found, expected.value, gross):
            wrong_outputs.append((name, found))
    wrong_gradients, missing = [], []
    for k, (g, expected) in enumerate(zip(done.gradients, truth.gradients, strict=True)):
        if expected is None:
            continue
        if g is None:
            if largest(expected.value) > 0:
                missing.append(subject.gradient_names[k])
        elif (found := compare(g, expected)) and _counts(found, expected.value, gross):
            wrong_gradients.append(Wrong(subject, dy, k, g, expected, found, situation))
    compared = any(
        e is not None and bool(e.known.any()) for e in (*truth.outputs, *truth.gradients)
    )
    wrong = tuple(wrong_outputs), tuple(wrong_gradients), tuple(missing)
    return Verdict(done, dy, *wrong, compared)


def is_right(subject: Subject) -> bool:
    """Whether the plain case is right, as far as anything can be said."""
    return subject.oracle is None or judge(subject).right


def _counts(mismatch: Mismatch, truth: Tensor, gross: float) -> bool:
    # A truth of exactly 0, as of one entry less its own mean, still has the rounding of its terms.
    return not mismatch.finite or mismatch.error > gross * (largest(truth) or NOTHING)


def narrowed(subject: Subject, done: Pass) -> Finding | None:
    """An output in a narrower dtype than every input."""
    dtype = working_dtype(subject.inputs)
    for i, y in enumerate(done.outputs):
        if torch.finfo(y.dtype).eps > torch.finfo(dtype).eps:
            name = output_name(i, len(done.outputs))
            said = f"{name} comes back in {short(y.dtype)} for {short(dtype)} inputs"
            return Finding("rounded-through-half", said, about=name)
    return None
