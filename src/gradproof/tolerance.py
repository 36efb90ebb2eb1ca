"""How far an honest op may be from the truth, and where a result is further away.

For an entry with true value r in a tensor of scale S, computed and stored in dtype d (ε its
epsilon) with sums in compute dtype c (fp32 for halves, d otherwise) of length at most L:

        4·ε_d·|r|               a few roundings on the way out
      + 2·ε_d·M                 half only: one intermediate rounded to d, M the largest |r|
      + 4·ε_c·√L·S              a sum of L terms, each addition rounded (random walk)
      + 8·e_c                   what the same formula in torch loses in dtype c, measured
      + 8·ε_c·K                 what rounding the inputs once to c would change, K measured in fp64
      + 4·min(e_d, 16·ε_d·M)    half only: what it loses in d itself, measured; capped, because
                                torch's own half-precision formulas can be arbitrarily far off

S is the largest entry when the signs of dy are drawn at random: a sum whose terms cancel keeps the
scale of its terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from gradproof.tensors import HALF, largest, number, told_apart


@dataclass(frozen=True)
class Expected:
    """The fp64 truth about one tensor and the distance allowed at each place.

    value: fp64, NaN or infinite where nothing can be asked.
    """

    value: Tensor
    tolerance: Tensor

    @property
    def known(self) -> Tensor:
        return torch.isfinite(self.value) & torch.isfinite(self.tolerance)


@dataclass(frozen=True)
class Mismatch:
    """Where a result is further from the truth than any honest op would be."""

    wrong: Tensor
    known: Tensor
    places: int
    total: int
    where: tuple[int, ...]
    got: float
    expected: float
    finite: bool

    @property
    def error(self) -> float:
        return abs(self.got - self.expected)

    def __str__(self) -> str:
        at = f" at {list(self.where)}" if self.where else ""
        if not self.finite:
            return (
                f"not finite at {self.places} of {self.total} places, first{at} "
                f"(got {self.got}, expected {number(self.expected)})"
            )
        known = f"{self.total} places"
        if self.total < self.wrong.numel():
            known = f"the {self.total} places looked at"
        count = "wrong" if self.wrong.numel() == 1 else f"wrong at {self.places} of {known}"
        got, expected = told_apart(self.got, self.expected)
        return f"{count}, by up to {number(self.error)}{at} (got {got}, expected {expected})"


def allowed(
    truth: Tensor,
    dtype: torch.dtype,
    length: int,
    scale: float,
    loss: float,
    half_loss: float,
    condition: float = 0.0,
) -> Expected:
    """The module's formula; `loss`, `half_loss` are e_c, e_d; the others S, L and K."""
    eps = torch.finfo(dtype).eps
    compute_eps = torch.finfo(torch.float32).eps if dtype in HALF else eps
    biggest = largest(truth)
    floor = 4 * compute_eps * math.sqrt(max(length, 1)) * max(scale, biggest)
    floor += 8 * loss + 8 * compute_eps * condition
    if dtype in HALF:
        floor += 2 * eps * biggest + 4 * min(half_loss, 16 * eps * biggest)
        floor += 4 * torch.finfo(dtype).smallest_normal * eps
    floor += torch.finfo(dtype).smallest_normal
    return Expected(truth, 4 * eps * truth.abs() + floor)


def compare(actual: Tensor, expected: Expected) -> Mismatch | None:
    """The worst disagreement, or None. An actual NaN where a number is expected is the worst."""
    known = expected.known
    got = actual.detach().double()
    distance = (got - expected.value).abs()
    excess = torch.where(torch.isfinite(got), distance / expected.tolerance, torch.inf)
    wrong = known & (excess > 1)
    places = int(wrong.sum())
    if not places:
        return None
    broken = wrong & ~torch.isfinite(got)
    if bool(broken.any()):
        index, places = int(broken.flatten().int().argmax()), int(broken.sum())
    else:
        index = int(torch.where(wrong, distance, -1.0).flatten().argmax())
    return Mismatch(
        wrong=wrong,
        known=known,
        places=places,
        total=int(known.sum()),
        where=tuple(int(i) for i in torch.unravel_index(torch.tensor(index), wrong.shape)),
        got=float(got.flatten()[index]),
        expected=float(expected.value.flatten()[index]),
        finite=not bool(broken.any()),
    )
