"""Memory that is recognisable: fresh tensors filled with one number, every tensor fenced by one.

A dispatch mode sees each tensor that the code under it makes. It moves the tensor into a larger
block whose margins hold `margin`, and fills it with `fill` if it is fresh (`torch.empty`,
`empty_like`, `new_empty`, `empty_strided`). Where a result changes with `fill`, something was read
before it was written; where it changes with `margin`, something beyond an end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from gradproof.tensors import same_bits

MARGIN = 64  # elements: keeps every alignment a kernel may rely on

_FRESH = {
    torch.ops.aten.empty.memory_format,
    torch.ops.aten.empty_like.default,
    torch.ops.aten.new_empty.default,
    torch.ops.aten.empty_strided.default,
    torch.ops.aten.new_empty_strided.default,
}


@dataclass(frozen=True)
class Fenced:
    """A block of `margin`, a tensor, and `margin` again."""

    block: Tensor
    margin: float

    @property
    def intact(self) -> bool:
        fence = torch.full((MARGIN,), self.margin, dtype=self.block.dtype, device=self.block.device)
        return same_bits(self.block[:MARGIN], fence) and same_bits(self.block[-MARGIN:], fence)


class Poisoned(TorchDispatchMode):
    """While active, every floating tensor that is made is fenced, and fresh ones hold `fill`."""

    def __init__(self, fill: float = 0.0, margin: float = 0.0):
        super().__init__()
        self.fill = fill
        self.margin = margin
        self.blocks: list[Fenced] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not _ordinary(result) or _shares_storage(result, args):
            return result
        tensor, block = fenced(result, self.margin)
        self.blocks.append(Fenced(block, self.margin))
        if func in _FRESH:
            tensor.fill_(self.fill)
        return tensor

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Nothing is compiled under this mode, and shielding it would import torch.compile whole,
        # which takes longer than all probes of a small op.
        return False

    @property
    def overruns(self) -> int:
        return sum(not block.intact for block in self.blocks)


def fenced(tensor: Tensor, margin: float) -> tuple[Tensor, Tensor]:
    """A dense tensor's copy in the same layout inside a block of `margin`, and the block."""
    shape = (tensor.numel() + 2 * MARGIN,)
    block = torch.full(shape, margin, dtype=tensor.dtype, device=tensor.device)
    inside = torch.as_strided(block, tensor.shape, tensor.stride(), MARGIN)
    return inside.copy_(tensor), block


def _shares_storage(result: Tensor, args: Any) -> bool:
    storage = result.untyped_storage().data_ptr()
    flat, _ = torch.utils._pytree.tree_flatten(args)
    return any(isinstance(a, Tensor) and a.untyped_storage().data_ptr() == storage for a in flat)


def _ordinary(tensor: Any) -> bool:
    return (
        isinstance(tensor, Tensor)
        and tensor.is_floating_point()
        and tensor.numel() > 0
        and tensor.layout == torch.strided
        and tensor.device.type != "meta"
        and _dense(tensor)
        and tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    )


def _dense(tensor: Tensor) -> bool:
    """Whether the elements fill their storage, in some order of dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True
