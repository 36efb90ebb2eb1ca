"""Is the op right at every size: empty, one, odd, across block edges, large?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor

from gradproof.judge import judge
from gradproof.oracle import FiniteDifferences
from gradproof.passes import NoGraphError, OpError
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.sizing import Axis, accepts, axes, resized
from gradproof.subject import Subject
from gradproof.tensors import count, listed

SMALL = (0, 1, 17, 64, 3, 65, 2, 16)
LARGE = (128, 257, 1000, 1024, 1025, 4099)
GROSS_SIZE = 1e-3  # of the largest entry: what goes wrong at an edge goes wrong by more than that
EQUAL = (4, 16)  # every axis alike
HUGE = (131073, 2**20 + 1)
MOST_ELEMENTS = 2**21
# Seconds in all; a size predicted to take longer than is left is skipped. A GPU is not slow but
# compiles a kernel for many a size.
SIZES_PATIENCE = 1.5
SIZES_PATIENCE_GPU = 20.0


@dataclass(frozen=True)
class Trial:
    """One set of sizes: what went wrong there, empty if nothing did. `names`: of what was wrong."""

    changed: Mapping[Axis, int]
    sizes: tuple[int, ...]  # of every axis
    trouble: str = ""
    names: tuple[str, ...] = ()

    def alone(self, axis: Axis) -> bool:
        return list(self.changed) == [axis]

    @property
    def empty(self) -> bool:
        return 0 in self.sizes


def sizes(subject: Subject) -> Iterator[Remark]:
    if subject.oracle is None:
        yield Note("without a reference and without float32 nothing can be said about sizes")
        return
    found = axes(subject)
    trials: list[Trial] = []
    refusals: list[str] = []
    for changed, variant in _variants(subject, found):
        every = tuple(changed.get(axis, axis.size) for axis in found)
        trouble = _trouble(variant)
        if isinstance(trouble, OpError):
            refusals.append(f"at {_names(subject, changed)} it is refused ({trouble})")
        else:
            trials.append(Trial(changed, every, *trouble))
    findings = list(_diagnosed(subject, found, trials))
    yield from findings
    if refusals:
        yield Note(refusals[0])
    labels = [axis.label(subject) for axis in found]
    yield Tried(
        f"{listed(labels)}: empty, one, odd, across block edges, large" if labels else "one"
    )


def _names(subject: Subject, changed: Mapping[Axis, int]) -> str:
    return listed([f"{axis.label(subject)} of {size}" for axis, size in changed.items()])


def _variants(
    subject: Subject, found: Sequence[Axis]
) -> Iterator[tuple[Mapping[Axis, int], Subject]]:
    """Small sizes of every axis first; large ones as long as time is left for them."""
    spent = rate = 0.0
    patience = SIZES_PATIENCE_GPU if subject.cuda else SIZES_PATIENCE
    for changed in _plans(found):
        elements = _elements(subject, changed)
        if elements > MOST_ELEMENTS or spent + rate * elements > patience:
            continue
        if not accepts(subject, changed):
            continue
        variant = resized(subject, changed)
        if variant is None:
            continue
        began = time.process_time()
        yield changed, variant
        took = time.process_time() - began
        spent += took
        if max(changed.values()) > max(SMALL):
            rate = took / max(elements, 1)


def _plans(found: Sequence[Axis]) -> Iterator[dict[Axis, int]]:
    last_first = found[::-1]
    for size in SMALL:
        yield from ({axis: size} for axis in last_first if size != axis.size)
    if len(found) > 1:
        yield from (dict.fromkeys(found, size) for size in EQUAL)
    for group in (LARGE, HUGE):
        for axis in last_first:
            yield from ({axis: size} for size in group if size != axis.size)


def _elements(subject: Subject, changed: Mapping[Axis, int]) -> int:
    shapes = {i: list(x.shape) for i, x in enumerate(subject.inputs) if isinstance(x, Tensor)}
    for axis, size in changed.items():
        for i, dim in axis.places:
            shapes[i][dim] = size
    return sum(math.prod(shape) for shape in shapes.values())


def _trouble(subject: Subject) -> OpError | tuple[str, tuple[str, ...]]:
    """What is wrong at this size; a deliberate refusal comes back as it is."""
    if isinstance(subject.oracle, FiniteDifferences):
        subject = replace(subject, oracle=replace(subject.oracle, sample=6))
    try:
        verdict = judge(subject, gross=GROSS_SIZE)
    except OpError as raised:
        return raised if raised.refusal else (f"the {raised.stage} raises {raised}", ("y",))
    except NoGraphError:
        return "the output has no grad_fn", ("y",)
    if verdict.right:
        return "", ()
    said = [f"{name} is {mismatch}" for name, mismatch in verdict.outputs]
    said += [wrong.statement for wrong in verdict.gradients]
    said += [f"{name} is None" for name in verdict.missing]
    return said[0], verdict.wrong_names


def _diagnosed(
    subject: Subject, found: Sequence[Axis], trials: Sequence[Trial]
) -> Iterator[Finding]:
    proper = [t for t in trials if not t.empty]
    known = judge(subject).wrong_names  # what is wrong at any size is no news at size 0
    bad = [t for t in trials if t.empty and t.trouble and t.names[0] not in known]
    if bad and any(not t.trouble for t in proper):
        said = f"with {_names(subject, bad[0].changed)}, {bad[0].trouble}"
        yield Finding("empty-input", said, about=bad[0].names[0])
    wrong = [t for t in proper if t.trouble]
    right = [t for t in proper if not t.trouble]
    if not wrong or not right:  # nowhere wrong; or everywhere, which is a matter of values
        return
    broadcast = _two_axes(subject, found, wrong, right)
    if broadcast is not None:
        yield broadcast
        return
    for axis in found:
        mine = [t for t in wrong if t.alone(axis)]
        if mine:
            yield _one_axis(subject, axis, mine, [t for t in right if t.alone(axis)])


def _one_axis(subject: Subject, axis: Axis, wrong: list[Trial], right: list[Trial]) -> Finding:
    bad, good = (sorted(t.changed[axis] for t in trials) for trials in (wrong, right))
    worst = max(wrong, key=lambda t: t.changed[axis])
    said = f"with {_names(subject, worst.changed)}, {worst.trouble}; wrong at {_sizes(bad)}"
    beside = f"right at {_sizes(good)}" if good else ""
    names = wrong[0].names[0]
    if bad == [1] and good:
        return Finding("single-element", said, beside, names)
    if good and min(bad) > max(good):
        return Finding("size-limit", said, beside, names)
    if len(bad) > 1 and (block := _block(bad, good)) > 1:
        return Finding("ragged-edge", said, f"{beside}: multiples of {block} are right", names)
    return Finding("wrong-at-some-sizes", said, beside, names)


def _block(bad: Sequence[int], good: Sequence[int]) -> int:
    """The smallest power of two none of whose multiples is wrong; 1 if there is none."""
    for k in range(1, 12):
        multiples = [n for n in good if n % 2**k == 0]
        if multiples and all(n % 2**k for n in bad):
            return int(2**k)
    return 1


def _two_axes(
    subject: Subject, found: Sequence[Axis], wrong: Sequence[Trial], right: Sequence[Trial]
) -> Finding | None:
    """Right exactly where two sizes, or the blocks that hold them, are equal; or exactly not."""
    questions: list[tuple[str, Callable[[int, int], bool]]] = [
        ("equal", lambda a, b: a == b),
        ("held by equal powers of two", lambda a, b: _power_of_two(a) == _power_of_two(b)),
    ]
    for (i, a), (j, b) in (
        (p, q) for p in enumerate(found) for q in enumerate(found) if p[0] < q[0]
    ):
        for words, same in questions:
            where_wrong = {same(t.sizes[i], t.sizes[j]) for t in wrong}
            where_right = {same(t.sizes[i], t.sizes[j]) for t in right}
            if len(where_wrong) == 1 and len(where_right) == 1 and where_wrong != where_right:
                when = "only" if where_wrong == {True} else "unless"
                pair = f"{a.label(subject)} and {b.label(subject)}"
                said = f"wrong {when} {pair} are {words}: at {wrong[0].sizes}, {wrong[0].trouble}"
                shapes = listed([str(t.sizes) for t in right[:3]])
                return Finding("broadcast-axis", said, f"right at {shapes}", wrong[0].names[0])
    return None


def _power_of_two(n: int) -> int:
    return 1 << max(n - 1, 0).bit_length()


def _sizes(values: Sequence[int]) -> str:
    few = [str(v) for v in values[:6]]
    return (
        listed(few)
        if len(values) <= 6
        else f"{', '.join(few)} and {count(len(values) - 6, 'more size')}"
    )


SIZES = Probe("sizes", "Is the op right at every size?", sizes)
