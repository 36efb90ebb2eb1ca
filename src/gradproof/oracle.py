"""Where the truth comes from: a reference in fp64, or finite differences of the op itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import torch
from torch import Tensor

from gradproof.passes import (
    NoGraphError,
    NoTruthError,
    OpError,
    backward,
    differentiate,
    draw_like,
    forward,
    leaves,
)
from gradproof.tensors import HALF, converted, draw, is_float, largest, short
from gradproof.tolerance import Expected, allowed, compare


@dataclass(frozen=True)
class Truth:
    """What each output and each gradient should be. None where nothing is known about it."""

    outputs: tuple[Expected | None, ...]
    gradients: tuple[Expected | None, ...]


class Oracle(Protocol):
    @property
    def name(self) -> str: ...

    def truth(self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]) -> Truth:
        """Raises NoTruthError where there is none."""
        ...


Rise = tuple[Tensor, ...]  # of each output
Rises = dict[int, tuple[Rise, Rise]]  # of each place

STEP = 2.0**-10  # relative; where the formula jumps, a smaller one would count the jump for more


def working_dtype(inputs: Sequence[Any]) -> torch.dtype:
    """The narrowest floating dtype among the inputs: what honest results may be rounded to."""
    return max((x.dtype for x in inputs if is_float(x)), key=lambda dtype: torch.finfo(dtype).eps)


def longest(inputs: Sequence[Any], outputs: Sequence[Tensor]) -> int:
    """An upper bound on the length of any sum: the largest tensor in play."""
    tensors = [t for t in (*inputs, *outputs) if isinstance(t, Tensor)]
    return max((t.numel() for t in tensors), default=1)


@dataclass(frozen=True)
class Reference:
    """The same formula in torch, evaluated in fp64."""

    function: Callable[..., Any]

    @property
    def name(self) -> str:
        return "its reference in float64"

    def exact(
        self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """Outputs and gradients in fp64, a zero gradient where no path leads."""
        return self.at(torch.float64, inputs, wrt, dy)

    def truth(self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]) -> Truth:
        try:
            return self._truth(inputs, wrt, dy)
        except OpError as raised:
            raise NoTruthError(raised.stage, raised.error) from None

    def check_takes(self, inputs: Sequence[Any], wrt: Sequence[int]) -> None:
        """Raise NoTruthError unless it runs on these values, in fp64 or (no half) as given."""
        given = working_dtype(inputs)
        for dtype in (torch.float64,) if given in HALF else (torch.float64, given):
            mine = leaves(converted(inputs, dtype), wrt)
            try:
                outputs = forward(self.function, mine)
                backward(outputs, [mine[i] for i in wrt], draw_like(outputs))
            except NoGraphError:
                pass
            except OpError as raised:
                raise NoTruthError(raised.stage, raised.error) from None

    def _truth(self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]) -> Truth:
        if any(isinstance(x, Tensor) and x.numel() == 0 for x in inputs):
            return self._truth_of_nothing(inputs, wrt, dy)
        dtype = working_dtype(inputs)
        compute = torch.float32 if dtype in HALF else dtype
        outputs, gradients = self.exact(inputs, wrt, dy)
        exact = (*outputs, *gradients)
        wide = self._like(exact, compute, inputs, wrt, dy)
        narrow = self._like(exact, dtype, inputs, wrt, dy) if dtype in HALF else wide
        scales = [max(largest(y), _term_scale(inputs)) for y in outputs]
        scales += [largest(g) for g in self._with_signs_drawn(inputs, wrt, dy)]
        dtypes = [dtype] * len(outputs) + [_coarser(inputs[i].dtype, dtype) for i in wrt]
        length = longest(inputs, outputs)
        conditions = self._conditions(exact, inputs, wrt, dy)
        expected = []
        for t, w, n, d, s, k in zip(exact, wide, narrow, dtypes, scales, conditions, strict=True):
            # Where the formula overflows in this dtype nobody can be asked for a number.
            possible = torch.where(torch.isfinite(w) & torch.isfinite(n), t, torch.nan)
            expected.append(allowed(possible, d, length, s, largest(w - t), largest(n - t), k))
        return Truth(tuple(expected[: len(outputs)]), tuple(expected[len(outputs) :]))

    def _truth_of_nothing(
        self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]
    ) -> Truth:
        """Where an input is empty: in fp64 alone, and on the CPU if the formula runs there.

        Some of torch's own operations end the process on an empty input: that is theirs to mend,
        and no reason to lose the report about the op. So where the outputs are empty, too, as the
        meta device can say, nothing is run: what is summed over nothing is zero. A formula that is
        infinite or NaN anywhere, such as a variance of nothing, has nothing to say.
        """
        device = dy[0].device
        shapes = self._shapes(inputs)
        if shapes and not any(map(math.prod, shapes)):
            outputs = tuple(torch.zeros(shape, dtype=torch.float64) for shape in shapes)
            gradients = tuple(torch.zeros_like(inputs[i], dtype=torch.float64) for i in wrt)
        else:
            mine = [x.cpu() if isinstance(x, Tensor) else x for x in inputs]
            try:
                outputs, gradients = self.exact(mine, wrt, [d.cpu() for d in dy])
            except OpError:  # it holds tensors of its own on the device
                outputs, gradients = self.exact(inputs, wrt, dy)
        exact = [t.to(device) for t in (*outputs, *gradients)]
        if not all(bool(torch.isfinite(t).all()) for t in exact):
            exact = [torch.full_like(t, torch.nan) for t in exact]
        dtype, length = working_dtype(inputs), longest(inputs, outputs)
        dtypes = [dtype] * len(outputs) + [_coarser(inputs[i].dtype, dtype) for i in wrt]
        expected = [
            allowed(t, d, length, largest(t), 0, math.inf)
            for t, d in zip(exact, dtypes, strict=True)
        ]
        return Truth(tuple(expected[: len(outputs)]), tuple(expected[len(outputs) :]))

    def _shapes(self, inputs: Sequence[Any]) -> list[torch.Size]:
        """Of the outputs, computed without touching memory; empty where it does not run so."""
        try:
            on_meta = [x.to("meta") if isinstance(x, Tensor) else x for x in inputs]
            return [y.shape for y in forward(self.function, converted(on_meta, torch.float64))]
        except OpError:
            return []

    def _conditions(
        self,
        exact: Sequence[Tensor],
        inputs: Sequence[Any],
        wrt: Sequence[int],
        dy: Sequence[Tensor],
    ) -> list[float]:
        """How fast each result changes with relative changes of the inputs, at its largest."""
        outputs, gradients = self.exact(_moved(converted(inputs, torch.float64)), wrt, dy)
        return [largest(a - b) / STEP for a, b in zip((*outputs, *gradients), exact, strict=True)]

    def _with_signs_drawn(
        self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        signs = [draw(d.shape, torch.float64, d.device, 7 + i).sign() for i, d in enumerate(dy)]
        drawn = [d.double() * s for d, s in zip(dy, signs, strict=True)]
        return self.exact(inputs, wrt, drawn)[1]

    def _like(
        self,
        exact: Sequence[Tensor],
        dtype: torch.dtype,
        inputs: Sequence[Any],
        wrt: Sequence[int],
        dy: Sequence[Tensor],
    ) -> list[Tensor]:
        """The formula's results in `dtype`, as fp64; the exact ones where torch has none."""
        try:
            outputs, gradients = self.at(dtype, inputs, wrt, dy)
        except OpError:
            return list(exact)
        return [t.double() for t in (*outputs, *gradients)]

    def at(
        self, dtype: torch.dtype, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]
    ) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        mine = converted(inputs, dtype)
        try:
            done = differentiate(self.function, mine, wrt, [d.to(dtype) for d in dy])
        except NoGraphError:
            outputs = tuple(y.detach() for y in forward(self.function, mine))
            return outputs, tuple(torch.zeros_like(mine[i]) for i in wrt)
        gradients = (
            torch.zeros_like(mine[i]) if g is None else g
            for i, g in zip(wrt, done.gradients, strict=True)
        )
        return done.outputs, tuple(gradients)


def _term_scale(inputs: Sequence[Any]) -> float:
    # Outputs may cancel as well (a sum of both signs); their terms are of the inputs' size.
    return min(1.0, max((largest(x) for x in inputs if is_float(x)), default=0.0))


def _coarser(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    return max(a, b, key=lambda dtype: torch.finfo(dtype).eps)


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
            expected = allowed(value, _coarser(dtype, self.dtype), longest(inputs, dy), scale, 0, 0)
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
        moved = forward(self.function, leaves(_moved(mine), ()))
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


def _moved(inputs: Sequence[Any]) -> list[Any]:
    """Every entry a relative STEP up or down."""
    return [
        x * (1 + STEP * draw(x.shape, x.dtype, x.device, 40 + i).sign()) if is_float(x) else x
        for i, x in enumerate(inputs)
    ]


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
