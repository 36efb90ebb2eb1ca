"""Is the op right at every size: empty, one, odd, across block edges, large?"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from gradproof.ascent import RIGHT, Trouble, affordable, ascent, foot, trouble_of
from gradproof.finite_differences import FiniteDifferences
from gradproof.judge import judge
from gradproof.passes import NoGraphError, OpError
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.repeat import GROSS_IF_LONG, repeated
from gradproof.report import Finding
from gradproof.sizing import Axis, accepts, axes, elements_of, resized
from gradproof.subject import Subject
from gradproof.tensors import count, listed

EQUAL = 16  # every axis alike
# Where a size is wrong, these tell one cause from another.
BETWEEN = (3, 48, 64, 257, 1025)
EQUAL_BESIDE = 4


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
    for changed, trouble in itertools.chain(
        _trials(subject, found), _between(subject, found, trials)
    ):
        if isinstance(trouble, OpError):
            refusals.append(f"at {_names(subject, changed)} it is refused ({trouble})")
        else:
            every = tuple(changed.get(axis, axis.size) for axis in found)
            trials.append(Trial(changed, every, *trouble))
    yield from _diagnosed(subject, found, trials)
    if refusals:
        yield Note(refusals[0])
    yield Tried("; ".join(_span(subject, axis, trials) for axis in found) or "one")


def _names(subject: Subject, changed: Mapping[Axis, int]) -> str:
    return listed([f"{axis.label(subject)} of {size}" for axis, size in changed.items()])


def _span(subject: Subject, axis: Axis, trials: Sequence[Trial]) -> str:
    tried = [axis.size, *(t.changed[axis] for t in trials if t.alone(axis))]
    sizes = count(len(tried), "size")
    return f"{axis.label(subject)}: {sizes} from {min(tried)} to {max(tried)}"


def _trials(
    subject: Subject, found: Sequence[Axis]
) -> Iterator[tuple[Mapping[Axis, int], Trouble]]:
    """Up each axis as far as the work allows, and all axes alike."""
    for axis in found[::-1]:
        for size, trouble in ascent(subject, axis).trials:
            yield {axis: size}, trouble
    yield from _alike(subject, found, EQUAL)


def _between(
    subject: Subject, found: Sequence[Axis], trials: Sequence[Trial]
) -> Iterator[tuple[Mapping[Axis, int], Trouble]]:
    """Once something has been seen to be wrong: further sizes below the largest of each axis."""
    if not any(t.trouble for t in trials if not t.empty):
        return
    for axis in found[::-1]:
        tried = [axis.size, *(t.changed[axis] for t in trials if t.alone(axis))]
        for size in BETWEEN:
            if size not in tried and size < max(tried) and accepts(subject, {axis: size}):
                variant = resized(subject, {axis: size})
                if variant is not None:
                    yield {axis: size}, trouble_of(variant)
    yield from _alike(subject, found, EQUAL_BESIDE)


def _alike(
    subject: Subject, found: Sequence[Axis], size: int
) -> Iterator[tuple[Mapping[Axis, int], Trouble]]:
    changed = dict.fromkeys(found, size)
    variant = affordable(subject, changed, foot(subject)) if len(found) > 1 else None
    if variant is not None:
        yield changed, trouble_of(variant)


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
    races = _races(subject, max(wrong, key=lambda t: elements_of(subject, t.changed)))
    if races:
        yield from races
        return
    broadcast = _two_axes(subject, found, wrong, right)
    if broadcast is not None:
        yield broadcast
        return
    for axis in found:
        mine = [t for t in wrong if t.alone(axis)]
        if mine:
            given = mine[0].names[0] not in known
            told = _one_axis(subject, axis, mine, [t for t in right if t.alone(axis)], given)
            if given or told.trap != "wrong-at-some-sizes":  # what is wrong as given is no news
                yield told


def _races(subject: Subject, trial: Trial) -> list[Finding]:
    """Where the same call gives another result again, the size is not the cause."""
    variant = resized(subject, trial.changed)
    assert variant is not None
    try:
        situation = f"with {_names(subject, trial.changed)}, "
        found = list(repeated(variant, situation, GROSS_IF_LONG))
    except (OpError, NoGraphError):
        return []
    return [f for f in found if f.gross or f.trap == "accumulates-across-calls"]


def _one_axis(
    subject: Subject, axis: Axis, wrong: list[Trial], right: list[Trial], given: bool
) -> Finding:
    """given: whether the size given is right; it counts with the others."""
    bad, good = ([t.changed[axis] for t in trials] for trials in (wrong, right))
    (good if given else bad).append(axis.size)
    bad, good = sorted(bad), sorted(good)
    worst = max(wrong, key=lambda t: t.changed[axis])
    said = f"with {_names(subject, worst.changed)}, {worst.trouble}; wrong at {_sizes(bad)}"
    beside = f"right at {_sizes(good)}" if good else ""
    names = wrong[0].names[0]
    if bad == [1] and good:
        return Finding("single-element", said, beside, names)
    limit = bool(good) and min(bad) > max(good)
    if given and limit:
        return Finding("size-limit", said, beside, names)
    sampled = isinstance(subject.oracle, FiniteDifferences)  # then right is less sure than wrong
    if not limit and (given or not sampled) and len(bad) > 1 and _block(bad, good) > 1:
        bad, good = _with_neighbours(subject, axis, bad, good)
        if (block := _block(bad, good)) > 1:
            padded = all(map(_is_power_of_two, good)) and not any(map(_is_power_of_two, bad))
            rule = "powers of two" if padded else f"multiples of {block}"
            return Finding("ragged-edge", said, f"{beside}: {rule} are right", names)
    return Finding("wrong-at-some-sizes", said, beside, names)


def _with_neighbours(
    subject: Subject, axis: Axis, bad: Sequence[int], good: Sequence[int]
) -> tuple[list[int], list[int]]:
    """More sizes: those that an explanation by blocks says are right, as far as they run.

    The round size below each wrong one, since where an error grows with size both are wrong; and
    the block itself, until it holds.
    """
    wrong, right = list(bad), list(good)

    def newly_known(size: int) -> bool:
        changed = {axis: size}
        if size in (*wrong, *right) or not accepts(subject, changed):
            return False
        variant = resized(subject, changed)
        trouble = None if variant is None else trouble_of(variant)
        if trouble is None or isinstance(trouble, OpError):
            return False
        (right if trouble == RIGHT else wrong).append(size)
        return True

    for n in bad:
        newly_known(1 << (n.bit_length() - 1))
    while newly_known(_block(wrong, right)):
        pass
    return sorted(wrong), sorted(right)


def _block(bad: Sequence[int], good: Sequence[int]) -> int:
    """The smallest power of two none of whose multiples is wrong; 1 if there is none.

    Nor is there one if many sizes are right between the wrong ones and multiples of it no more, or
    if all of these are beyond the wrong ones.
    """
    for k in range(1, 12):
        multiples = [n for n in good if n % 2**k == 0]
        if multiples and all(n % 2**k for n in bad):
            if min(multiples) > max(bad):  # an error that fades as sizes grow
                return 1
            contrary = [n for n in good if n > min(bad) and n % 2**k]
            return int(2**k) if 2 * len(contrary) <= len(bad) else 1
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


def _is_power_of_two(n: int) -> bool:
    return n == _power_of_two(n)


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
