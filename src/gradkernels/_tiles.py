"""Tiles of tensors, which the GPU's copy engine (TMA) fetches where it has one, from sm_90 on."""

from typing import Any, NamedTuple

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor

from gradkernels._launch import properties, remembered


class Tiled(TensorDescriptor):
    """A descriptor that does not check again what `aligned` ensures: a small call has a dozen."""

    def __post_init__(self) -> None:
        pass


class Tiler(NamedTuple):
    """How kernels on one device take tensors of which they load and store tiles."""

    copy_engine: bool  # which the interpreter imitates
    shared_memory: int  # bytes that one program can have
    traced: bool  # by torch.compile

    def __call__(self, t: Tensor, block: list[int]) -> Any:
        """`t`, as `aligned` gives it, described to TMA; without TMA the kernel describes it."""
        if not self.copy_engine:
            return t
        if self.traced:  # torch.compile knows descriptors made by this function alone
            return TensorDescriptor.from_tensor(t, block)
        return Tiled(t, t.shape, t.stride(), block)

    def aligned(self, t: Tensor) -> Tensor:
        """`t`, or a copy, laid out for tiles.

        TMA wants neighbours in the last dimension and the rest, as the start, at multiples of 16
        bytes. Where `t` starts is not known while torch.compile traces, so there only a contiguous
        one is taken to start well. Without TMA, `t` is to be contiguous.
        """
        t = t.resolve_neg()
        if not self.copy_engine:
            return t.contiguous()
        starts_well = t.is_contiguous() if self.traced else t.data_ptr() % 16 == 0
        if starts_well and strides_fit(t.stride(), t.element_size()):
            return t
        return self.empty(t, *t.shape).copy_(t)

    def empty(self, like: Tensor, *shape: int, dtype: torch.dtype | None = None) -> Tensor:
        """An empty tensor laid out for tiles, which may leave a gap after each row."""
        *leading, columns = shape
        dtype = dtype or like.dtype
        gap = -columns % (16 // dtype.itemsize) if self.copy_engine else 0
        t = like.new_empty(*leading, columns + gap, dtype=dtype)
        return t[..., :columns] if gap else t


def tiler(like: Tensor) -> Tiler:
    """That of the device of `like`."""
    return tiler_of(like.device)


@remembered
def tiler_of(device: torch.device) -> Tiler:
    traced = torch.compiler.is_compiling()
    if device.type != "cuda":
        return Tiler(True, 227 << 10, traced)
    of_device = properties(device)
    return Tiler(of_device.major >= 9, of_device.shared_memory_per_block_optin, traced)


@remembered
def strides_fit(strides: tuple[int, ...], size: int) -> bool:
    """Whether the copy engine can follow strides, counted in elements of so many bytes."""
    *leading, last = strides
    return last == 1 and all(stride > 0 and stride * size % 16 == 0 for stride in leading)
