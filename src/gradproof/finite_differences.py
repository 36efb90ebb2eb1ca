"""Differences of the op's own forward: the truth about gradients where no reference is given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor

from gradproof.oracle import STEP, Truth, coarser, longest, nudged, working_dtype
from gradproof.passes import NoTruthError, OpError, forward, leaves
from gradproof.tensors import converted, is_float, largest, short
from gradproof.tolerance import Expected, allowed, compare

Rise = tuple[Tensor, ...]  # of each output
Rises = dict[int, tuple[Rise, Rise]]  # of each place


@dataclass(frozen=True)
class FiniteDifferences:
    """Central differences of the op's own forward, in fp64 if it computes in fp64.

    Each known gradient entry costs four forwards, so only a sample of `sample` entries an input is
    known; the forward itself is taken as the definition. Two step sizes give the noise: where they
    disagree, the tolerance grows by as much.
    """

    function: Callable[..., Any]
    dtype: torch.dtype
    sample: int = 24
    # The last rises measured: every dy takes them from here, and forwards are dear.
    _last: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, function: Callable[..., Any], inputs: Sequence[Any]) -> FiniteDifferences | None:
        """None if the op computes neither in fp64 nor in fp32."""
        dtype = _widest_honest_dtype(function, inputs)
        return None if dtype is None else cls(function, dtype)

    @property
    def name(self) -> str:
        return f"finite differences in {short(self.dtype)}"

    @property
    def _step(self) -> float:
        return 1e-5 if self.dtype == torch.float64 else 2e-2

    def truth(self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]) -> Truth:
        try:
            wide, reach, rises = self._measured(inputs, wrt)
        except OpError as raised:
            raise NoTruthError(raised.stage, raised.error) from None
        upstream = [d.double() for d in dy]
        dtype = working_dtype(inputs)
        moved = sum(
            float((y.double() * d).abs().sum()) for y, d in zip(wide, upstream, strict=True)
        )
        rounding = torch.finfo(torch.float64).eps * moved / self._step
        gradients = []
        for i, mine, reaching in zip(wrt, rises, reach, strict=True):
            value, noise = _slopes(inputs[i], mine, upstream)
            value.view(-1)[reaching] = torch.nan
            value[value.abs() > torch.finfo(inputs[i].dtype).max] = torch.nan
            value[value.abs() <= rounding] = 0
            scale = largest(value)
            expected = allowed(value, coarser(dtype, self.dtype), longest(inputs, dy), scale, 0, 0)
            slack = 4 * noise + 1e-7 * scale
            gradients.append(Expected(value, expected.tolerance + slack))
        return Truth((None,) * len(dy), tuple(gradients))

    def _measured(
        self, inputs: Sequence[Any], wrt: Sequence[int]
    ) -> tuple[tuple[Tensor, ...], list[list[int]], list[Rises]]:
        """The outputs in our dtype, `_reach` and `_rises`, kept for the next dy."""
        key = (*inputs, *wrt)
        known = self._last.get("key", ())
        if len(key) != len(known) or any(a is not b for a, b in zip(key, known, strict=True)):
            mine = list(converted(inputs, self.dtype))
            wide = forward(self.function, leaves(mine, ()))
            rises = self._rises(mine, wrt)
            found = wide, self._reach(inputs, mine, wide, wrt, rises), rises
            self._last.update(key=key, found=found)
        return self._last["found"]

    def _reach(
        self,
        inputs: Sequence[Any],
        mine: list[Any],
        wide: tuple[Tensor, ...],
        wrt: Sequence[int],
        rises: list[Rises],
    ) -> list[list[int]]:
        """The places of each input that reach an output which is another in the dtype given.

        It overflows there, or the formula has constants that depend on the dtype (the eps that
        `F.rms_norm` has by default): our slope is not the op's.
        """
        if working_dtype(inputs) == self.dtype:
            return [[] for _ in wrt]
        given = forward(self.function, leaves(inputs, ()))
        unlike = self._unlike(inputs, given, mine, wide)
        if not any(bool(u.any()) for u in unlike):
            return [[] for _ in wrt]

        def reaches(i: int, k: int, rise: Rise) -> bool:
            x = inputs[i].clone()
            x.view(-1)[k] *= 2
            there = forward(self.function, leaves((*inputs[:i], x, *inputs[i + 1 :]), ()))
            return any(
                bool(((r != 0) | (a != b))[u].any())
                for r, a, b, u in zip(rise, given, there, unlike, strict=True)
            )

        return [
            [k for k, (_, rise) in places.items() if reaches(i, k, rise)]
            for i, places in zip(wrt, rises, strict=True)
        ]

    def _unlike(
        self,
        inputs: Sequence[Any],
        given: tuple[Tensor, ...],
        mine: list[Any],
        wide: tuple[Tensor, ...],
    ) -> list[Tensor]:
        """Where each output is further from the one in our dtype than rounding takes it."""
        dtype = working_dtype(inputs)
        moved = forward(self.function, leaves(nudged(mine), ()))
        unlike, length = [], longest(inputs, wide)
        for y, t, m in zip(given, wide, moved, strict=True):
            condition = largest(m.double() - t.double()) / STEP
            expected = allowed(t.double(), dtype, length, largest(t), 0, math.inf, condition)
            # A slope may be off by far more than the output is: what is surely like is asked.
            found = compare(y, replace(expected, tolerance=expected.tolerance / 4))
            unlike.append(torch.zeros_like(y, dtype=torch.bool) if found is None else found.wrong)
        return unlike

    def _rises(self, mine: list[Any], wrt: Sequence[int]) -> list[Rises]:
        """For each input and place, ∂outputs/∂place with twice the step, and with the step."""
        step = self._step
        return [
            {
                k: (self._rise(mine, i, k, 2 * step), self._rise(mine, i, k, step))
                for k in _sample_places(mine[i].numel(), self.sample)
            }
            for i in wrt
        ]

    def _rise(self, inputs: list[Any], i: int, k: int, step: float) -> Rise:
        places, outputs = [], []
        for sign in (1, -1):
            x = inputs[i].clone()
            x.view(-1)[k] += sign * step
            places.append(x.view(-1)[k].double())
            outputs.append(forward(self.function, leaves((*inputs[:i], x, *inputs[i + 1 :]), ())))
        run = places[0] - places[1]
        return tuple((y.double() - z.double()) / run for y, z in zip(*outputs, strict=True))


def _slopes(x: Tensor, rises: Rises, dy: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
    """The gradient, extrapolated from both steps, and how far they disagree."""
    value = torch.full(x.shape, torch.nan, dtype=torch.float64, device=x.device)
    noise = torch.full_like(value, torch.inf)
    for k, both in rises.items():
        coarse, fine = (
            float(sum((rise * d).sum() for rise, d in zip(step, dy, strict=True))) for step in both
        )
        value.view(-1)[k] = fine + (fine - coarse) / 3
        noise.view(-1)[k] = abs(fine - coarse)
    return value, noise


def _sample_places(n: int, sample: int) -> list[int]:
    """All places of a small tensor; of a large one the first, the last and a spread between."""
    if n <= sample:
        return list(range(n))
    generator = torch.Generator().manual_seed(11)
    middle = torch.randperm(n - 2, generator=generator)[: sample - 2] + 1
    return [0, *sorted(middle.tolist()), n - 1]


def _widest_honest_dtype(function: Callable[..., Any], inputs: Sequence[Any]) -> torch.dtype | None:
    """fp64 if the op takes it and resolves a change of 1e-10; else fp32 if the op takes that."""
    for dtype, relative in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        try:
            plain = converted(inputs, dtype)
            moved = tuple(x * (1 + relative) if is_float(x) else x for x in plain)
            before, after = forward(function, plain), forward(function, moved)
        except (OpError, TypeError):
            continue
        changed = [not torch.equal(a, b) for a, b in zip(before, after, strict=True)]
        if all(y.dtype == dtype for y in before) and any(changed):
            return dtype
    return None
