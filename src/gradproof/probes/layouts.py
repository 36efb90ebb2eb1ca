"""Is the answer the same whatever the strides of each input and of dy?"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence

import torch
from torch import Tensor

from gradproof.layout import expanded, rearranged
from gradproof.oracle import Truth
from gradproof.passes import NoGraphError, OpError, Pass
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.sizing import enlarged
from gradproof.subject import Subject, nearly_equal, output_name
from gradproof.tensors import count, is_float, largest, listed, number
from gradproof.tolerance import Expected, compare

# Rows of equal entries are badly conditioned (a variance of 0); wrong strides are wrong by more.
CONDITIONING = 0.1


def layouts(subject: Subject) -> Iterator[Remark]:
    subject = enlarged(subject)  # a dimension of one has no layout worth the name
    tried = 0
    for position, x in enumerate(subject.inputs):
        if is_float(x):
            name = subject.names[position]
            tried += yield from _one(subject, name, x, position, None)
    for k, d in enumerate(subject.dy):
        name = "dy" if len(subject.dy) == 1 else f"dy{k}"
        tried += yield from _one(subject, name, d, None, k)
    yield Tried(f"{count(tried, 'layout')} of inputs and dy")


def _one(
    subject: Subject, name: str, tensor: Tensor, position: int | None, which: int | None
) -> Generator[Remark, None, int]:
    """Every layout of one tensor, gathered into one finding; returns how many there are."""
    wrong: list[str] = []
    right: list[str] = []
    seen: list[str] = []
    refused: list[tuple[str, OpError]] = []
    variants = [*rearranged(tensor), *expanded(tensor)]
    for label, laid in variants:
        try:
            other = _run(subject, laid, position, which)
            plain = subject.base  # the same values, contiguous
            if 0 in laid.stride():
                plain = _run(subject, laid.contiguous(), position, which)
        except OpError as raised:
            refused.append((label, raised))
            continue
        except NoGraphError:
            continue
        differences = list(_disagreements(subject, plain, other, 0 in laid.stride()))
        if differences and not _explained(subject, laid, position, which, plain, other):
            wrong.append(label)
            seen += differences
        else:
            right.append(label)
    yield from _said(name, which is not None, wrong, right, seen, refused)
    return len(variants)


def _said(
    name: str,
    is_dy: bool,
    wrong: list[str],
    right: list[str],
    seen: list[str],
    refused: list[tuple[str, OpError]],
) -> Iterator[Remark]:
    if wrong:
        trap = "dy-strides-ignored" if is_dy else "input-strides-ignored"
        more = f"; also {listed([_brief(label) for label in wrong[1:]])}" if wrong[1:] else ""
        beside = f"with {name} contiguous it is right"
        if right:
            beside += f", and {listed([_brief(label) for label in right])}"
        yield Finding(trap, f"with {name} {wrong[0]}, {seen[0]}{more}", beside, name)
    broken = [(label, raised) for label, raised in refused if is_dy or not raised.refusal]
    if broken:
        label, raised = broken[0]
        trap = "dy-layout-refused" if is_dy else "input-strides-ignored"
        yield Finding(
            trap, f"with {name} {label}: {raised}", f"with {name} contiguous it runs", name
        )
    elif refused:
        yield Note(f"{name} {refused[0][0]} is refused ({refused[0][1]})")


def _brief(label: str) -> str:
    return label.split(",")[0] if "[" not in label else label


def _run(subject: Subject, laid: Tensor, position: int | None, which: int | None) -> Pass:
    inputs = list(subject.inputs)
    dy = list(subject.dy)
    if position is not None:
        inputs[position] = laid
    if which is not None:
        dy[which] = laid
    return subject.run(dy, inputs)


def _explained(
    subject: Subject,
    laid: Tensor,
    position: int | None,
    which: int | None,
    plain: Pass,
    other: Pass,
) -> bool:
    """Whether the difference is not the layout's: both are right, or stride 0 and both are wrong.

    Equal rows or columns can be badly conditioned (a variance of 0), whatever their strides.
    """
    if subject.oracle is None:
        return False
    inputs, dy = list(subject.inputs), list(subject.dy)
    if position is not None:
        inputs[position] = laid
    if which is not None:
        dy[which] = laid
    truth = subject.oracle.truth(inputs, subject.wrt, dy)
    return _right(other, truth) or (0 in laid.stride() and not _right(plain, truth))


def _right(done: Pass, truth: Truth) -> bool:
    pairs = zip((*done.outputs, *done.gradients), (*truth.outputs, *truth.gradients), strict=True)
    return all(
        got is None
        or want is None
        or (got.shape == want.value.shape and compare(got, want) is None)
        for got, want in pairs
    )


def _disagreements(subject: Subject, plain: Pass, other: Pass, equal_values: bool) -> Iterator[str]:
    length = max(x.numel() for x in subject.inputs if is_float(x))
    triples: Sequence[tuple[str, Tensor | None, Tensor | None, float]] = [
        *(
            (output_name(i, len(plain.outputs)), a, b, largest(subject.base.outputs[i]))
            for i, (a, b) in enumerate(zip(plain.outputs, other.outputs, strict=True))
        ),
        *zip(subject.gradient_names, plain.gradients, other.gradients, subject.scales, strict=True),
    ]
    for name, a, b, scale in triples:
        if a is None or b is None or nearly_equal(b, a, scale, length):
            continue
        if a.shape != b.shape:
            yield f"{name} has shape {list(b.shape)} instead of {list(a.shape)}"
            continue
        allowed = CONDITIONING * (max(scale, largest(a)) or 1.0)
        tolerance = torch.full_like(a, allowed, dtype=torch.float64)
        if (mismatch := compare(b, Expected(a.double(), tolerance))) is not None:
            yield f"{name} is {mismatch}"
        elif not equal_values:
            yield f"{name} differs by up to {number(largest(a.double() - b.double()))}"


LAYOUTS = Probe("layouts", "Is the answer the same whatever the strides?", layouts)
