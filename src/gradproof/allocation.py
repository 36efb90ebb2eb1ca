"""Fresh memory that is recognisable, with fences around it.

A dispatch mode sees every `torch.empty`, `empty_like`, `new_empty` and `empty_strided` of the code
under it and hands out a tensor filled with `poison`, inside a larger block whose margins hold a
pattern that is checked afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

MARGIN = 64  # elements: keeps every alignment a kernel may rely on
FENCE = 0x5A

_ALLOCATIONS = {
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.new_empty.default,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.new_empty_strided.default,
}


@dataclass(frozen=True)
class Fenced:
    """A tensor in the middle of a block; the bytes around it should keep the fence pattern."""

    block: Tensor
    start: int
    stop: int

    @property
    def intact(self) -> bool:
        margins = (self.block[: self.start], self.block[self.stop :])
        return all(bool((m == FENCE).all()) for m in margins)


class Poisoned(TorchDispatchMode):
    """While active, uninitialised floating memory holds `poison` and every block is fenced."""

    def __init__(self, poison: float):
        super().__init__()
        self.poison = poison
        self.blocks: list[Fenced] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in _ALLOCATIONS and _ordinary(result):
            return self._fenced(result)
        return result

    def _fenced(self, plain: Tensor) -> Tensor:
        span = 1 + sum((n - 1) * s for n, s in zip(plain.shape, plain.stride(), strict=True))
        margin = MARGIN * plain.element_size()
        size = span * plain.element_size()
        block = torch.full((size + 2 * margin,), FENCE, dtype=torch.uint8, device=plain.device)
        self.blocks.append(Fenced(block, margin, margin + size))
        inside = block[margin : margin + size].view(plain.dtype)
        inside.fill_(self.poison)
        tensor = torch.empty(0, dtype=plain.dtype, device=plain.device)
        storage = block.untyped_storage()
        return tensor.set_(storage, MARGIN, plain.size(), plain.stride())

    @property
    def broken_fences(self) -> int:
        return sum(not block.intact for block in self.blocks)


def _ordinary(tensor: Any) -> bool:
    return (
        isinstance(tensor, Tensor)
        and tensor.is_floating_point()
        and tensor.numel() > 0
        and tensor.layout == torch.strided
        and tensor.device.type != "meta"
        and not tensor.is_pinned()
    )


def surrounded(tensor: Tensor, guard: float) -> Tensor:
    """The same values in the middle of a buffer of `guard`."""
    if not tensor.is_floating_point():
        return tensor.clone()
    buffer = torch.full(
        (tensor.numel() + 2 * MARGIN,), guard, dtype=tensor.dtype, device=tensor.device
    )
    inside = buffer[MARGIN : MARGIN + tensor.numel()].view(tensor.shape)
    inside.copy_(tensor)
    return inside
