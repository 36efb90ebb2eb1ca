"""Is the answer the same whatever the strides of each input and of dy?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradproof.layout import expanded, rearranged, with_gaps
from gradproof.oracle import Truth
from gradproof.passes import NoGraphError, NoTruthError, OpError, Pass
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.sizing import enlarged
from gradproof.subject import Subject, apart, nearly_equal, output_name
from gradproof.tensors import count, is_float, largest, listed, number
from gradproof.tolerance import Expected, compare

# Rows of equal entries are badly conditioned (a variance of 0); wrong strides are wrong by more.
CONDITIONING = 0.1


@dataclass(frozen=True, eq=False)
class Slot:
    """An input by its position, or a dy by its number, and the tensor that stands there."""

    name: str
    tensor: Tensor
    position: int | None = None
    which: int | None = None

    @property
    def variants(self) -> list[tuple[str, Tensor]]:
        return [*rearranged(self.tensor), *expanded(self.tensor)]


Laid = Sequence[tuple[Slot, Tensor]]


def layouts(subject: Subject) -> Iterator[Remark]:
    if subject.random and subject.reference is None:
        yield Note("the op draws random numbers, in an order that may follow the layout")
        return
    subject = enlarged(subject)  # a dimension of one has no layout worth the name
    inputs = [
        Slot(subject.names[i], x, position=i) for i, x in enumerate(subject.inputs) if is_float(x)
    ]
    dys = [
        Slot("dy" if len(subject.dy) == 1 else f"dy{k}", d, which=k)
        for k, d in enumerate(subject.dy)
    ]
    together = [group for group in ([*inputs, *dys], inputs) if _kept_apart(group)]
    agree = together[0] if together and _all_agree(subject, together[0]) else []
    for slot in (*inputs, *dys):
        if slot not in agree:
            yield from _one(subject, slot, slot.variants)
        elif slot.which is not None:  # beside plain inputs, as autograd hands it over most often
            yield from _one(subject, slot, list(expanded(slot.tensor)))
    tried = sum(len(slot.variants) for slot in (*inputs, *dys))
    yield Tried(f"{count(tried, 'layout')} of inputs and dy")


def _kept_apart(slots: Sequence[Slot]) -> bool:
    """Whether there are layouts enough that no two slots ever have the same."""
    return len(slots) > 1 and all(
        turn < how_many for slot, turn in _turns(slots) if (how_many := _layouts_of(slot))
    )


def _all_agree(subject: Subject, slots: Sequence[Slot]) -> bool:
    """Whether no layout makes a difference."""
    return all(_agrees(subject, laid) for laid in (*_gaps_alone(slots), *_all_at_once(slots)))


def _gaps_alone(slots: Sequence[Slot]) -> Iterator[Laid]:
    """Each input with gaps while all else is contiguous, as some ops choose a fast path by."""
    for slot in slots:
        if slot.which is None and slot.tensor.ndim:
            yield [(slot, with_gaps(slot.tensor))]


def _all_at_once(slots: Sequence[Slot]) -> Iterator[Laid]:
    """Each slot goes through its layouts, in each run every slot in another: few runs if all hold.

    Strides of one that are taken for another's show all the more. Layouts with stride 0 keep apart:
    they change the values, and those of dy come alone.
    """
    inputs = [slot for slot in slots if slot.which is None]
    for kind, several in ((rearranged, slots), (expanded, inputs)):
        variants = [list(kind(slot.tensor)) for slot in several]
        for turn in range(max(map(len, variants))):
            yield [
                (slot, mine[(turn + ahead) % len(mine)][1])
                for (slot, ahead), mine in zip(_turns(several), variants, strict=True)
                if mine
            ]


def _turns(slots: Sequence[Slot]) -> list[tuple[Slot, int]]:
    """Slots that share a list of layouts start apart in it: none ever has another's layout."""
    counts = [_layouts_of(slot) for slot in slots]
    return [(slot, counts[:k].count(counts[k])) for k, slot in enumerate(slots)]


def _layouts_of(slot: Slot) -> int:
    return len(list(rearranged(slot.tensor)))


def _agrees(subject: Subject, laid: Laid) -> bool:
    try:
        return not _differences(subject, laid)
    except (OpError, NoGraphError):
        return False


def _one(subject: Subject, slot: Slot, variants: Sequence[tuple[str, Tensor]]) -> Iterator[Remark]:
    """These layouts of one tensor, gathered into one finding."""
    wrong: list[str] = []
    right: list[str] = []
    seen: list[str] = []
    refused: list[tuple[str, OpError]] = []
    for label, tensor in variants:
        try:
            differences = _differences(subject, [(slot, tensor)])
        except OpError as raised:
            if _runs(subject, slot, tensor.clone(memory_format=torch.contiguous_format)):
                refused.append((label, raised))
            continue
        except NoGraphError:
            continue
        (wrong if differences else right).append(label)
        seen += differences
    yield from _said(slot.name, slot.which is not None, wrong, right, seen, refused)


def _differences(subject: Subject, laid: Laid) -> list[str]:
    """What differs from the same values laid out plainly, unless the truth excuses it."""
    other = _run(subject, laid)
    plain = subject.base
    stretched = any(0 in tensor.stride() for _, tensor in laid)
    if stretched:  # other values than the subject's
        if subject.reference is not None and _right(other, _truth(subject, laid)):
            return []
        plain = _run(subject, [(slot, tensor.contiguous()) for slot, tensor in laid])
    found = list(_disagreements(subject, plain, other, stretched))
    if found and (truth := _truth(subject, laid)) is not None:
        if _right(other, truth) or (stretched and not _right(plain, truth)):
            return []  # equal rows can be badly conditioned (a variance of 0), whatever the strides
        found = [one for one in found if not _wrong_anyway(one, plain, truth)]
    return [one.said for one in found]


def _runs(subject: Subject, slot: Slot, tensor: Tensor) -> bool:
    try:
        _run(subject, [(slot, tensor)])
    except (OpError, NoGraphError):
        return False
    return True


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


def _run(subject: Subject, laid: Laid) -> Pass:
    inputs, dy = _arguments(subject, laid)
    return subject.run(dy, inputs)


def _arguments(subject: Subject, laid: Laid) -> tuple[list[Any], list[Tensor]]:
    inputs, dy = list(subject.inputs), list(subject.dy)
    for slot, tensor in laid:
        if slot.position is not None:
            inputs[slot.position] = tensor
        if slot.which is not None:
            dy[slot.which] = tensor
    return inputs, dy


def _truth(subject: Subject, laid: Laid) -> Truth | None:
    if subject.oracle is None:
        return None
    inputs, dy = _arguments(subject, laid)
    try:
        return subject.oracle.truth(inputs, subject.wrt, dy)
    except NoTruthError:
        return None


def _right(done: Pass, truth: Truth | None) -> bool:
    return truth is not None and all(
        got is None
        or want is None
        or (got.shape == want.value.shape and compare(got, want) is None)
        for got, want in zip(_results(done), _results(truth), strict=True)
    )


def _results(done: Pass | Truth) -> tuple[Any, ...]:
    return (*done.outputs, *done.gradients)


@dataclass(frozen=True)
class Disagreement:
    """said: of which result, and how far. which: the result's number. apart: its places, if any."""

    said: str
    which: int
    apart: Tensor | None = None


def _wrong_anyway(found: Disagreement, plain: Pass, truth: Truth) -> bool:
    """Whether the contiguous run is wrong at each of these places as far as is known."""
    got, want = _results(plain)[found.which], _results(truth)[found.which]
    if want is None or found.apart is None or got.shape != want.value.shape:
        return False
    known, mismatch = found.apart & want.known, compare(got, want)
    return mismatch is not None and bool(known.any()) and not bool((known & ~mismatch.wrong).any())


def _disagreements(
    subject: Subject, plain: Pass, other: Pass, equal_values: bool
) -> Iterator[Disagreement]:
    length = max(x.numel() for x in subject.inputs if is_float(x))
    triples: Sequence[tuple[str, Tensor | None, Tensor | None, float]] = [
        *(
            (output_name(i, len(plain.outputs)), a, b, largest(subject.base.outputs[i]))
            for i, (a, b) in enumerate(zip(plain.outputs, other.outputs, strict=True))
        ),
        *zip(subject.gradient_names, plain.gradients, other.gradients, subject.scales, strict=True),
    ]
    for which, (name, a, b, scale) in enumerate(triples):
        if a is None or b is None or nearly_equal(b, a, scale, length):
            continue
        if a.shape != b.shape:
            said = f"{name} has shape {list(b.shape)} instead of {list(a.shape)}"
            yield Disagreement(said, which)
            continue
        places = apart(b, a, scale, length)
        allowed = CONDITIONING * (max(scale, largest(a)) or 1.0)
        tolerance = torch.full_like(a, allowed, dtype=torch.float64)
        if (mismatch := compare(b, Expected(a.double(), tolerance))) is not None:
            yield Disagreement(f"{name} is {mismatch}", which, places)
        elif not equal_values:
            said = f"{name} differs by up to {number(largest(a.double() - b.double()))}"
            yield Disagreement(said, which, places)


LAYOUTS = Probe("layouts", "Is the answer the same whatever the strides?", layouts)
