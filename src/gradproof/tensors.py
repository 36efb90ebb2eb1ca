"""Small things about tensors that every probe needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

HALF = (torch.float16, torch.bfloat16)


def is_float(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def any_empty(values: Sequence[Any]) -> bool:
    return any(isinstance(x, Tensor) and x.numel() == 0 for x in values)


def short(dtype: torch.dtype) -> str:
    """`float32` for `torch.float32`."""
    return str(dtype).removeprefix("torch.")


def describe(value: Any) -> str:
    """`float32[4, 64]` for a tensor, the value itself for anything else."""
    if isinstance(value, Tensor):
        return f"{short(value.dtype)}{list(value.shape)}"
    return repr(value)


def duplicate(tensor: Tensor) -> Tensor:
    """The same values, shape, strides and offset over a storage of its own."""
    storage = tensor.detach().untyped_storage().clone()
    copy = torch.empty(0, dtype=tensor.dtype, device=tensor.device)
    return copy.set_(storage, tensor.storage_offset(), tensor.size(), tensor.stride())


def same_bits(a: Tensor, b: Tensor) -> bool:
    """Equal bit for bit: NaN equals itself, and −0 differs from 0."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.numel() == 0:
        return True
    flat = (t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (a, b))
    return torch.equal(*flat)


def draw(shape: Sequence[int], dtype: torch.dtype, device: torch.device, seed: int) -> Tensor:
    """Standard normal numbers that are the same on every device."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(list(shape), generator=generator).to(device=device, dtype=dtype)


def largest(tensor: Tensor) -> float:
    """Greatest finite magnitude, 0 where there is none."""
    finite = tensor.detach().double().abs()
    finite = finite[torch.isfinite(finite)]
    return float(finite.max()) if finite.numel() else 0.0


def converted(inputs: Sequence[Any], dtype: torch.dtype) -> tuple[Any, ...]:
    """Every floating tensor contiguous in `dtype`, everything else as it is."""
    return tuple(x.detach().to(dtype).contiguous().clone() if is_float(x) else x for x in inputs)


def number(value: float, digits: int = 3) -> str:
    """Three significant digits, as a person would write them."""
    return f"{value:.{digits}g}"


def told_apart(a: float, b: float) -> tuple[str, str]:
    """Two unequal numbers with as many digits as it takes to see that they are."""
    for digits in range(3, 17):
        if number(a, digits) != number(b, digits):
            break
    return number(a, digits), number(b, digits)


def count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"


def listed(items: Sequence[str], last: str = "and") -> str:
    """`a, b and c`."""
    *head, tail = items
    return f"{', '.join(head)} {last} {tail}" if head else tail
