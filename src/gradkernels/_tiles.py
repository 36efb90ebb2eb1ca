"""Tiles of tensors, which the GPU's copy engine (TMA) fetches where it has one, from sm_90 on."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from gradkernels._launch import properties, remembered


def copy_engine(t: Tensor) -> bool:
    """Whether tiles of `t` can be fetched by TMA, which the interpreter imitates."""
    return not t.is_cuda or properties(t.device).major >= 9


def shared_memory(t: Tensor) -> int:
    """How many bytes of shared memory one program on the device of `t` can have."""
    return properties(t.device).shared_memory_per_block_optin if t.is_cuda else 227 << 10


class Tiled(TensorDescriptor):
    """A descriptor that does not check again what `aligned` ensures: a small call has a dozen."""

    def __post_init__(self) -> None:
        pass


def tiler(like: Tensor) -> Callable[[Tensor, list[int]], Any]:
    """How a kernel takes an `aligned` tensor to load and store tiles: `tiler(like)(t, shape)`.

    Loads are zero, and stores go nowhere, where a tile leaves `t`. Without TMA where `like` is,
    this is `t` itself, which the kernel describes to itself.
    """
    if not copy_engine(like):
        return lambda t, block: t
    if torch.compiler.is_compiling():  # which knows descriptors made by this function alone
        return lambda t, block: TensorDescriptor.from_tensor(t, block)
    return lambda t, block: Tiled(t, t.shape, t.stride(), block)


def aligned(t: Tensor) -> Tensor:
    """`t`, or a copy, laid out for tiles.

    TMA wants neighbours in the last dimension and the rest, as the start, at multiples of 16
    bytes. Where `t` starts is not known while torch.compile traces, so there only a contiguous
    one is taken to start well. Without TMA, `t` is to be contiguous.
    """
    t = t.resolve_neg()
    if not copy_engine(t):
        return t.contiguous()
    starts_well = t.is_contiguous() if torch.compiler.is_compiling() else t.data_ptr() % 16 == 0
    if starts_well and strides_fit(t.stride(), t.dtype.itemsize):
        return t
    return new_aligned(t, *t.shape).copy_(t)


@remembered
def strides_fit(strides: tuple[int, ...], size: int) -> bool:
    """Whether the copy engine can follow strides, counted in elements of so many bytes."""
    *leading, last = strides
    return last == 1 and all(stride > 0 and stride * size % 16 == 0 for stride in leading)


def new_aligned(like: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
    """An empty tensor laid out for tiles, which may leave a gap after each row."""
    *leading, columns = shape
    dtype = dtype or like.dtype
    gap = -columns % (16 // dtype.itemsize) if copy_engine(like) else 0
    t = like.new_empty(*leading, columns + gap, dtype=dtype)
    return t[..., :columns] if gap else t
