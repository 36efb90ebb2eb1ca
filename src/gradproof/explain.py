"""From a wrong gradient to the trap behind it: hypotheses, each tested against the numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from gradproof.functions import function_nodes
from gradproof.oracle import nudged
from gradproof.passes import NoGraphError, OpError, Pass, forward, leaves
from gradproof.reference import Reference
from gradproof.report import Finding
from gradproof.subject import Subject
from gradproof.tensors import HALF, largest, listed, number, short
from gradproof.tolerance import Expected, Mismatch, compare


@dataclass(frozen=True)
class Wrong:
    """A gradient that is not what it should be, with all that is known about it."""

    subject: Subject
    dy: tuple[Tensor, ...]
    position: int  # in subject.wrt
    got: Tensor
    expected: Expected
    mismatch: Mismatch
    situation: str = ""

    @property
    def name(self) -> str:
        return self.subject.gradient_names[self.position]

    @property
    def statement(self) -> str:
        where = f"{self.situation}, " if self.situation else ""
        return f"{where}{self.name} is {self.mismatch}"

    def is_explained_by(self, value: Tensor, times: float = 1.0) -> bool:
        """Whether the op returned `value`, to the accuracy asked of the truth, so many times it."""
        if value.shape != self.got.shape:
            return False
        tolerance = self.expected.tolerance * max(times, 1.0)
        return compare(self.got, Expected(value.double(), tolerance)) is None


ASIDE = 2.0**-6  # relative: two steps of bfloat16
LINEAR = 32  # roundings of the largest entry, by which two honest runs may differ;
GROSS = 1e-3  # of it, where nothing is known to be wrong: sums may cancel, in any order

Hypothesis = Callable[[Wrong], tuple[str, str] | None]


def explain(wrong: Wrong) -> Finding:
    """The first hypothesis that fits, else a plain `wrong-gradient` with the place."""
    for hypothesis in HYPOTHESES:
        if (answer := hypothesis(wrong)) is not None:
            trap, detail = answer
            return Finding(trap, f"{wrong.statement}: {detail}", about=wrong.name)
    beside = "; ".join(filter(None, (_where(wrong), _output_saved(wrong))))
    return Finding("wrong-gradient", wrong.statement, beside, wrong.name)


def zero(wrong: Wrong) -> tuple[str, str] | None:
    if bool((wrong.got != 0).any()):
        return None
    return "zero-gradient", "every entry is 0"


def not_finite(wrong: Wrong) -> tuple[str, str] | None:
    if wrong.mismatch.finite:
        return None
    kind = "special-values" if wrong.situation.startswith("special") else "overflow"
    return kind, "the reference is finite there"


def swapped(wrong: Wrong) -> tuple[str, str] | None:
    others = _all_expected(wrong)
    for name, expected in zip(wrong.subject.gradient_names, others, strict=True):
        if name != wrong.name and wrong.is_explained_by(expected.value):
            return "gradients-swapped", f"it is {name}"
    return None


def ignores_dy(wrong: Wrong) -> tuple[str, str] | None:
    tripled = tuple(3 * d for d in wrong.dy)
    other = _gradient(wrong.subject, tripled, wrong.position)
    if other is None or not torch.equal(other, wrong.got):
        return None
    return "dy-ignored", "it is the same with 3·dy"


def nonlinear(wrong: Wrong) -> tuple[str, str] | None:
    halved = _scaled_run(wrong.subject, wrong.dy, 0.5)
    other = None if halved is None else halved.gradients[wrong.position]
    off = _off_scale(wrong.got, other, 0.5, 0)
    return (
        ("not-linear-in-dy", f"with dy/2 it is not halved, by {number(2 * off)}") if off else None
    )


def nonlinear_in_dy(subject: Subject, halved: bool = True) -> Iterator[Finding]:
    """Needs no truth: what is done to dy is done to the gradient, be it halved or loss-scaled."""
    loss_scale = 2.0**4 if _narrow(subject) else 2.0**16
    for factor in (0.5, loss_scale)[not halved :]:
        if (scaled := _scaled_run(subject, subject.dy, factor)) is None:
            continue
        for name, got, other in zip(
            subject.gradient_names, subject.base.gradients, scaled.gradients, strict=True
        ):
            if got is not None and (off := _off_scale(got, other, factor, GROSS)):
                said = f"with {factor:g}·dy it is not {factor:g} times as large, by {number(off)}"
                yield Finding("not-linear-in-dy", f"{name}: {said}", about=name)
                return


def _narrow(subject: Subject) -> bool:
    """Whether a number of some gradient ends at 65504."""
    return any(
        y.dtype == torch.float16
        for y in (*subject.base.outputs, *(subject.inputs[i] for i in subject.wrt))
    )


def _scaled_run(subject: Subject, dy: tuple[Tensor, ...], factor: float) -> Pass | None:
    try:
        return subject.run(tuple(d * factor for d in dy))  # a power of two: exact in every dtype
    except (OpError, NoGraphError):
        return None


def _off_scale(got: Tensor, other: Tensor | None, factor: float, gross: float) -> float:
    """How far `other` is from `factor` times `got`; 0 for rounding or where it overflows."""
    allowed = max(LINEAR * torch.finfo(got.dtype).eps, gross)
    if other is None or not bool(torch.isfinite(other).all()):
        return 0.0
    off = largest(other.double() - factor * got.double())
    return off if off > allowed * factor * largest(got) else 0.0


def constant_factor(wrong: Wrong) -> tuple[str, str] | None:
    truth = wrong.expected.value
    solid = wrong.expected.known & (truth.abs() > 0.05 * largest(truth))
    if int(solid.sum()) == 0:
        return None
    ratios = wrong.got.double()[solid] / truth[solid]
    factor = float(ratios.median())
    if not math.isfinite(factor) or abs(factor) < 1e-6:
        return None
    if not wrong.is_explained_by(truth * factor, abs(factor)):
        return None
    if abs(factor + 1) < 0.01:
        return "wrong-sign", "it is −1 times the right one"
    if truth.numel() < 2:  # any single number is a multiple of any other
        return None if not (known := _familiar(factor, wrong)) else ("constant-factor", known)
    return "constant-factor", _familiar(factor, wrong) or f"it is {factor:.4g} times the right one"


def _familiar(factor: float, wrong: Wrong) -> str:
    sizes = {
        n for x in wrong.subject.inputs if isinstance(x, Tensor) for n in (*x.shape, x.numel())
    }
    names = {math.log2(math.e): "log₂ e", math.log(2): "ln 2"}
    for n in sizes:
        if n > 2:
            names |= {
                float(n): f"{n}, a size of the input",
                1 / n: f"1/{n}, {n} a size of the input",
            }
        if n > 4:
            names |= {math.sqrt(n): f"√{n}, {n} a size of the input"}
            names |= {1 / math.sqrt(n): f"1/√{n}, {n} a size of the input"}
    for x in wrong.subject.inputs:
        if isinstance(x, Tensor) and x.dtype in (torch.int32, torch.int64) and bool((x < 0).any()):
            kept, every = int((x >= 0).sum()), x.numel()
            share = f"{kept} of {every} targets are not ignored"
            names |= {kept / every: share, every / max(kept, 1): share}
    for value, name in names.items():
        if abs(factor / value - 1) < 2e-3:
            return f"it is {factor:.4g} times the right one ({name})"
    return ""


def transposed(wrong: Wrong) -> tuple[str, str] | None:
    truth = wrong.expected.value
    if truth.ndim < 2 or truth.shape[-1] != truth.shape[-2] or truth.shape[-1] < 2:
        return None
    if not wrong.is_explained_by(truth.mT):
        return None
    return "transposed-gradient", "it is the transpose of the right one"


def flag_ignored(wrong: Wrong) -> tuple[str, str] | None:
    """The gradient belongs to the other value of a boolean argument."""
    reference = wrong.subject.reference
    if reference is None:
        return None
    for i, flag in enumerate(wrong.subject.inputs):
        if not isinstance(flag, bool):
            continue
        flipped = [*wrong.subject.inputs[:i], not flag, *wrong.subject.inputs[i + 1 :]]
        try:
            _, gradients = reference.exact(flipped, wrong.subject.wrt, wrong.dy)
        except (OpError, RuntimeError):
            continue
        if wrong.is_explained_by(gradients[wrong.position]):
            name = wrong.subject.names[i]
            return "flag-ignored", f"it is the gradient for {name}={not flag}, called with {flag}"
    return None


def rounded(wrong: Wrong) -> tuple[str, str] | None:
    """Every entry, or every operand, is a number of a narrower format."""
    if wrong.got.dtype in HALF:
        return None
    truth = wrong.expected.value
    if bool(torch.isfinite(wrong.got).all()) and wrong.got.numel() >= 4:
        for dtype in (torch.bfloat16, torch.float16):
            if torch.equal(wrong.got.to(dtype).to(wrong.got.dtype), wrong.got):
                return "rounded-through-half", f"every entry is a {short(dtype)} number"
    relative = wrong.mismatch.error / max(largest(truth), 1e-300)
    if wrong.got.dtype == torch.float64 and relative < 1e-5:
        return "rounded-through-half", f"its relative error, {number(relative)}, is float32's"
    if relative < 2e-2 and _errors_look_random(wrong) and not _error_is_smooth(wrong):
        formats = {2**-8: "bfloat16", 2**-11: "float16 or TF32"}
        nearest = min(formats, key=lambda u: abs(math.log(relative / u)))
        return (
            "rounded-through-half",
            f"its relative error, {number(relative)}, is what {formats[nearest]} operands give",
        )
    return None


def _errors_look_random(wrong: Wrong) -> bool:
    error = (wrong.got.double() - wrong.expected.value)[wrong.expected.known]
    if error.numel() < 8:
        return True
    return abs(float(error.mean())) < 0.5 * float(error.abs().mean()) + 1e-300


def _error_is_smooth(wrong: Wrong) -> bool:
    """Whether it hardly changes with the operands: that is another formula, and no rounding."""
    subject, before = wrong.subject, wrong.got.double() - wrong.expected.value
    if subject.reference is None:
        return False
    aside = nudged((*subject.inputs, *wrong.dy), ASIDE)
    inputs, dy = aside[: len(subject.inputs)], aside[len(subject.inputs) :]
    try:
        got = subject.run(dy, inputs).gradients[wrong.position]
        _, truth = subject.reference.exact(inputs, subject.wrt, dy)
    except (OpError, NoGraphError):
        return False
    if got is None:
        return False
    change = got.double() - truth[wrong.position] - before
    return bool(change.norm() < 0.5 * before.norm())  # √2 for errors drawn anew


def lost_contributions(wrong: Wrong) -> tuple[str, str] | None:
    """dy restricted to one part after another: which parts reach the gradient?"""
    if len(wrong.dy) != 1 or wrong.subject.oracle is None or wrong.dy[0].numel() < 2:
        return None
    parts = list(_parts_of(wrong.dy[0]))
    lost, right = [], []
    for label, part in parts:
        expected = wrong.subject.oracle.truth(wrong.subject.inputs, wrong.subject.wrt, (part,))
        truth = expected.gradients[wrong.position]
        got = _gradient(wrong.subject, (part,), wrong.position)
        if truth is None or got is None or largest(truth.value) == 0:
            continue
        if compare(got, truth) is None:
            right.append(label)
        elif not bool((got != 0).any()):
            lost.append(label)
    if not lost:
        return None
    kept = f"; {listed(right)} {'arrives' if len(right) == 1 else 'arrive'} whole" if right else ""
    partly = len(parts) - len(lost) - len(right)
    rest = f", {partly} in part" if partly else ""
    return "contributions-lost", (
        f"alone, {len(lost)} of {len(parts)} slices of dy give a gradient of 0{kept}{rest}"
    )


def _parts_of(dy: Tensor, at_most: int = 8) -> Iterator[tuple[str, Tensor]]:
    flat = dy.flatten()
    edges = torch.linspace(0, flat.numel(), min(at_most, flat.numel()) + 1).int().tolist()
    for start, stop in itertools.pairwise(edges):
        part = torch.zeros_like(flat)
        part[start:stop] = flat[start:stop]
        yield f"dy.flatten()[{start}:{stop}]", part.view(dy.shape)


def missing_row_term(wrong: Wrong) -> tuple[str, str] | None:
    """The error lies, row by row, in the span of 1, x and y: a dropped row reduction."""
    truth = wrong.expected.value
    error = wrong.got.double() - truth
    if truth.ndim < 1 or truth.shape[-1] < 6 or not bool(torch.isfinite(error).all()):
        return None
    candidates = {"a constant": torch.ones_like(truth)}
    for i, x in enumerate(wrong.subject.inputs):
        if isinstance(x, Tensor) and x.is_floating_point() and x.shape == truth.shape:
            candidates[wrong.subject.names[i]] = x.double()
    for i, y in enumerate(wrong.subject.base.outputs):
        if y.shape == truth.shape and wrong.subject.base.outputs[0].shape == truth.shape:
            candidates["the output" if i == 0 else f"output {i}"] = y.double()
    rows = error.reshape(-1, truth.shape[-1])
    active = rows.norm(dim=-1) > 1e-3 * max(largest(truth), 1e-300)
    if not bool(active.any()):
        return None
    for name, candidate in candidates.items():
        along = candidate.reshape(rows.shape)[active]
        residual = _residual(rows[active], [along])
        if residual < 1e-3:
            what = "in every row" if truth.ndim > 1 else "throughout"
            return "missing-row-term", f"the error is {name} times one number {what}"
    return None


def _residual(rows: Tensor, basis: list[Tensor]) -> float:
    """How much of each row the basis leaves unexplained, relative, at its worst row."""
    matrix = torch.stack(basis, dim=-1)
    solution = torch.linalg.lstsq(matrix, rows.unsqueeze(-1)).solution
    left = rows - (matrix @ solution).squeeze(-1)
    return float((left.norm(dim=-1) / rows.norm(dim=-1)).max())


def _where(wrong: Wrong) -> str:
    """Which rows or columns the wrong places share."""
    pattern = wrong.mismatch.wrong
    sampled = wrong.mismatch.total < pattern.numel()
    if pattern.ndim == 0 or sampled or wrong.mismatch.places == wrong.mismatch.total:
        return ""
    for dim in range(pattern.ndim):
        others = [d for d in range(pattern.ndim) if d != dim]
        touched = pattern.any(dim=others) if others else pattern
        hit = touched.nonzero().flatten().tolist()
        if len(hit) <= touched.numel() // 2:
            span = f"{hit[0]} to {hit[-1]}" if len(hit) > 1 else f"{hit[0]}"
            return f"all wrong places have index {span} of {touched.numel()} along dimension {dim}"
    return ""


def _output_saved(wrong: Wrong) -> str:
    """A kernel that stores its result where an intermediate was saved leaves just this trace."""
    mine = leaves(wrong.subject.inputs, wrong.subject.wrt)
    outputs = forward(wrong.subject.op, mine)
    saved = [t for node in function_nodes(outputs) for t in node.saved_tensors if t is not None]
    addresses = {y.data_ptr() for y in outputs if y.numel()}
    if not any(t.data_ptr() in addresses for t in saved):
        return ""
    return "the output itself is saved for backward: right only if the formula is one in y"


def _all_expected(wrong: Wrong) -> list[Expected]:
    oracle = wrong.subject.oracle
    if not isinstance(oracle, Reference):
        return [wrong.expected] * len(wrong.subject.wrt)
    _, gradients = oracle.exact(wrong.subject.inputs, wrong.subject.wrt, wrong.dy)
    return [Expected(g, wrong.expected.tolerance) for g in gradients]


def _gradient(subject: Subject, dy: tuple[Tensor, ...], position: int) -> Tensor | None:
    try:
        done: Pass = subject.run(dy=dy)
    except (OpError, NoGraphError):
        return None
    return done.gradients[position]


# Cheap and telling first; each is tested against the numbers, so the order only breaks ties.
HYPOTHESES: tuple[Hypothesis, ...] = (
    not_finite,
    zero,
    swapped,
    ignores_dy,
    nonlinear,
    constant_factor,
    transposed,
    flag_ignored,
    rounded,
    lost_contributions,
    missing_row_term,
)
