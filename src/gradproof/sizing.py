"""The same op at other sizes: which dimensions belong together, and inputs refilled to fit.

A dimension of one input may be tied to dimensions of others (the 64 of x[32, 64] and of w[64]).
Which are is found by asking the reference: a group may change alone if the reference still runs.
Without a reference, equal sizes are taken to be tied.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradproof.passes import NoGraphError, NoOutputError, OpError
from gradproof.subject import Subject, found_once
from gradproof.tensors import is_float

Place = tuple[int, int]  # (input, dimension)

MOST_ELEMENTS = 2**21  # of all inputs together
LARGE = (2**20 + 1, 4099)


@dataclass(frozen=True)
class Axis:
    """Dimensions that change together."""

    places: tuple[Place, ...]
    size: int

    def label(self, subject: Subject) -> str:
        input_, dim = self.places[0]
        return f"dimension {dim} of {subject.names[input_]}"


@found_once
def axes(subject: Subject) -> tuple[Axis, ...]:
    """Every independent group of dimensions, each dimension in exactly one."""
    places = [
        (i, d) for i, x in enumerate(subject.inputs) if isinstance(x, Tensor) for d in range(x.ndim)
    ]
    by_size: dict[int, list[Place]] = {}
    for i, d in places:
        by_size.setdefault(subject.inputs[i].shape[d], []).append((i, d))
    if subject.reference is None:
        return tuple(Axis(tuple(group), size) for size, group in by_size.items())
    found = (axis for size, group in by_size.items() for axis in _independent(subject, size, group))
    return tuple(sorted(found, key=lambda axis: axis.places))


def _independent(subject: Subject, size: int, group: list[Place]) -> Iterator[Axis]:
    """Split places of one size into the smallest groups the reference lets change alone."""
    left = list(group)
    while left:
        first, others = left[0], left[1:]
        for extra in itertools.chain.from_iterable(
            itertools.combinations(others, k) for k in range(min(len(others), 4) + 1)
        ):
            axis = Axis((first, *extra), size)
            if size > 1 and all(accepts(subject, {axis: size + n}) for n in (1, 4)):
                break
        else:
            axis = Axis(tuple(left), size)
        yield axis
        left = [place for place in left if place not in axis.places]


def accepts(subject: Subject, sizes: Mapping[Axis, int]) -> bool:
    """Whether the reference runs at these sizes."""
    return _accepts(subject, frozenset(sizes.items()))


@found_once
def _accepts(subject: Subject, sizes: frozenset[tuple[Axis, int]]) -> bool:
    variant = resized(subject, dict(sizes))
    return variant is not None and all(map(variant.reference_runs_on, subject.trial_devices))


def resized(subject: Subject, sizes: Mapping[Axis, int]) -> Subject | None:
    """The same op on inputs of these sizes, values drawn from the ones given; None: impossible."""
    shapes = [list(x.shape) if isinstance(x, Tensor) else [] for x in subject.inputs]
    for axis, size in sizes.items():
        for i, d in axis.places:
            shapes[i][d] = size
    inputs: list[Any] = []
    for i, x in enumerate(subject.inputs):
        if not isinstance(x, Tensor) or list(x.shape) == shapes[i]:
            fresh = x
        else:
            fresh = _refilled(x, shapes[i], seed=500 + i)
        if isinstance(fresh, Tensor) and not is_float(fresh) and fresh.numel():
            bound = _index_bound(subject, x, sizes)
            if bound == 0:
                return None
            if bound is not None:
                fresh = torch.where(fresh >= 0, fresh % bound, fresh)
        inputs.append(fresh)
    return subject.at(inputs)


def elements_of(subject: Subject, sizes: Mapping[Axis, int]) -> int:
    """Elements of all inputs together at these sizes."""
    shapes = {i: list(x.shape) for i, x in enumerate(subject.inputs) if isinstance(x, Tensor)}
    for axis, size in sizes.items():
        for i, dim in axis.places:
            shapes[i][dim] = size
    return sum(math.prod(shape) for shape in shapes.values())


def _refilled(x: Tensor, shape: Sequence[int], seed: int) -> Tensor:
    """Elements of `x` drawn with replacement; floats a little apart, so that none are equal."""
    generator = torch.Generator().manual_seed(seed)
    if x.numel() == 0:
        return torch.randn(list(shape), generator=generator).to(x)
    picks = torch.randint(x.numel(), list(shape), generator=generator).to(x.device)
    drawn = x.flatten()[picks]
    if not is_float(x):
        return drawn
    jitter = 1 + 0.1 * torch.rand(list(shape), generator=generator).to(x.device)
    return (drawn * jitter).to(x.dtype)


def _index_bound(subject: Subject, x: Tensor, sizes: Mapping[Axis, int]) -> int | None:
    """The least new size of an axis that the integers of `x` may index; None if none changed."""
    if x.dtype == torch.bool or x.numel() == 0:
        return None
    top = int(x.max())
    new = [size for axis, size in sizes.items() if axis.size > top]
    return min(new) if new else None


@found_once
def unseen(subject: Subject) -> tuple[tuple[str, Subject], ...]:
    """One other shape, the same for all who ask: an odd one, which is no multiple of any block.

    Nothing has run at it before, and its `base` is the first run there is. Where the op raises at
    every such shape, it is one of those; where the reference takes none, there is none.
    """
    refused: tuple[tuple[str, Subject], ...] = ()
    for axis in axes(subject)[::-1]:
        size = (axis.size + 13) | 1
        if axis.size < 2 or not accepts(subject, {axis: size}):
            continue
        if (variant := resized(subject, {axis: size})) is not None:
            shape = (f"with {axis.label(subject)} of {size}, ", variant)
            if _runs(variant):
                return (shape,)
            refused = refused or (shape,)
    return refused


def _runs(subject: Subject) -> bool:
    try:
        subject.base  # noqa: B018 (computed here, and kept)
    except (OpError, NoGraphError, NoOutputError):
        return False
    return True


def grown(subject: Subject) -> Iterator[tuple[str, Subject]]:
    """Each axis alone at the largest size that is tried of it: as many programs as there may be."""
    for axis in axes(subject):
        for size in LARGE[indexed(subject, axis) :]:
            if elements_of(subject, {axis: size}) <= MOST_ELEMENTS and (
                accepts(subject, {axis: size})
            ):
                variant = resized(subject, {axis: size})
                if variant is not None:
                    yield f"with {axis.label(subject)} of {size}, ", variant
                break


def indexed(subject: Subject, axis: Axis) -> bool:
    """Whether an integer input runs along the axis: each index may stand for a whole row."""
    return any(not is_float(subject.inputs[i]) for i, _ in axis.places)


def enlarged(subject: Subject) -> Subject:
    """Dimensions of one made two where the reference allows it."""
    for axis in axes(subject):
        if axis.size == 1 and accepts(subject, {axis: 2}):
            variant = resized(subject, {axis: 2})
            subject = variant if variant is not None else subject
    return subject
