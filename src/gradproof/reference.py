"""The same formula in torch, in float64: the truth where there is one to be given."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradproof.oracle import STEP, Truth, coarser, longest, nudged, working_dtype
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
from gradproof.tensors import HALF, any_empty, converted, draw, is_float, largest
from gradproof.tolerance import allowed


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
        """As `computed`; but where inputs and outputs are empty, it is taken for granted.

        What is summed over nothing is zero. Some of torch's own operations end the process on an
        empty input: that is theirs to mend, and no reason to lose the report about the op.
        """
        shapes = self._shapes(inputs) if any_empty(inputs) else []
        if not shapes or any(map(math.prod, shapes)):
            return self.computed(inputs, wrt, dy)
        device = dy[0].device
        outputs = [torch.zeros(shape, dtype=torch.float64, device=device) for shape in shapes]
        gradients = [torch.zeros_like(inputs[i], dtype=torch.float64) for i in wrt]
        return _allowed_of_nothing(outputs, gradients, inputs, wrt)

    def computed(self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]) -> Truth:
        """What the formula gives. Raises NoTruthError where it raises."""
        of = self._of_nothing if any_empty(inputs) else self._of_values
        try:
            return of(inputs, wrt, dy)
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

    def _of_values(self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]) -> Truth:
        dtype = working_dtype(inputs)
        compute = torch.float32 if dtype in HALF else dtype
        outputs, gradients = self.exact(inputs, wrt, dy)
        exact = (*outputs, *gradients)
        wide = self._like(exact, compute, inputs, wrt, dy)
        narrow = self._like(exact, dtype, inputs, wrt, dy) if dtype in HALF else wide
        scales = [max(largest(y), _term_scale(inputs)) for y in outputs]
        scales += [largest(g) for g in self._with_signs_drawn(inputs, wrt, dy)]
        dtypes = [dtype] * len(outputs) + [coarser(inputs[i].dtype, dtype) for i in wrt]
        length = longest(inputs, outputs)
        conditions = self._conditions(exact, inputs, wrt, dy)
        expected = []
        for t, w, n, d, s, k in zip(exact, wide, narrow, dtypes, scales, conditions, strict=True):
            # Where the formula overflows in this dtype nobody can be asked for a number.
            possible = torch.where(torch.isfinite(w) & torch.isfinite(n), t, torch.nan)
            expected.append(allowed(possible, d, length, s, largest(w - t), largest(n - t), k))
        return Truth(tuple(expected[: len(outputs)]), tuple(expected[len(outputs) :]))

    def _of_nothing(self, inputs: Sequence[Any], wrt: Sequence[int], dy: Sequence[Tensor]) -> Truth:
        """Where an input is empty: in fp64 alone, and on the CPU if the formula runs there.

        A formula that is infinite or NaN anywhere, such as a variance of nothing, says nothing.
        """
        mine = [x.cpu() if isinstance(x, Tensor) else x for x in inputs]
        try:
            outputs, gradients = self.exact(mine, wrt, [d.cpu() for d in dy])
        except OpError:  # it holds tensors of its own on the device
            outputs, gradients = self.exact(inputs, wrt, dy)
        exact = [t.to(dy[0].device) for t in (*outputs, *gradients)]
        if not all(bool(torch.isfinite(t).all()) for t in exact):
            exact = [torch.full_like(t, torch.nan) for t in exact]
        return _allowed_of_nothing(exact[: len(outputs)], exact[len(outputs) :], inputs, wrt)

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
        outputs, gradients = self.exact(nudged(converted(inputs, torch.float64)), wrt, dy)
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


def _allowed_of_nothing(
    outputs: Sequence[Tensor],
    gradients: Sequence[Tensor],
    inputs: Sequence[Any],
    wrt: Sequence[int],
) -> Truth:
    dtype, length = working_dtype(inputs), longest(inputs, outputs)
    of_gradients = [coarser(inputs[i].dtype, dtype) for i in wrt]
    return Truth(
        tuple(allowed(y, dtype, length, largest(y), 0, math.inf) for y in outputs),
        tuple(
            allowed(g, d, length, largest(g), 0, math.inf)
            for g, d in zip(gradients, of_gradients, strict=True)
        ),
    )


def _term_scale(inputs: Sequence[Any]) -> float:
    # Outputs may cancel as well (a sum of both signs); their terms are of the inputs' size.
    return min(1.0, max((largest(x) for x in inputs if is_float(x)), default=0.0))
