"""Where the truth comes from, and what is asked of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from gradproof.tensors import draw, is_float
from gradproof.tolerance import Expected

STEP = 2.0**-10  # relative; where the formula jumps, a smaller one would count the jump for more


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


def working_dtype(inputs: Sequence[Any]) -> torch.dtype:
    """The narrowest floating dtype among the inputs: what honest results may be rounded to."""
    return max((x.dtype for x in inputs if is_float(x)), key=lambda dtype: torch.finfo(dtype).eps)


def longest(inputs: Sequence[Any], outputs: Sequence[Tensor]) -> int:
    """An upper bound on the length of any sum: the largest tensor in play."""
    tensors = [t for t in (*inputs, *outputs) if isinstance(t, Tensor)]
    return max((t.numel() for t in tensors), default=1)


def coarser(a: torch.dtype, b: torch.dtype) -> torch.dtype:
    return max(a, b, key=lambda dtype: torch.finfo(dtype).eps)


def nudged(inputs: Sequence[Any], step: float = STEP) -> list[Any]:
    """Every entry a relative step up or down."""
    return [
        x * (1 + step * draw(x.shape, x.dtype, x.device, 40 + i).sign()) if is_float(x) else x
        for i, x in enumerate(inputs)
    ]
