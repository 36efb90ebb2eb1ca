"""Tiles of tensors, which the GPU's copy engine (TMA) fetches where it has one, from sm_90 on."""

from typing import Any

import torch
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor


def ceil_div(n: int, d: int) -> int:
    """⌈n / d⌉. `triton.cdiv` costs three microseconds on the host, too many for a small call."""
    return -(-n // d)


def copy_engine(t: Tensor) -> bool:
    """Whether tiles of `t` can be fetched by TMA, which the interpreter imitates."""
    return not t.is_cuda or torch.cuda.get_device_properties(t.device).major >= 9


def shared_memory(t: Tensor) -> int:
    """How many bytes of shared memory one program on the device of `t` can have."""
    if not t.is_cuda:
        return 227 << 10
    properties: Any = torch.cuda.get_device_properties(t.device)
    return properties.shared_memory_per_block_optin


def tiled(t: Tensor, block: list[int]) -> TensorDescriptor | Tensor:
    """An `aligned` tensor as a kernel takes it to load and store tiles of the shape `block`.

    Loads are zero, and stores go nowhere, where a tile leaves `t`. Without TMA this is `t` itself,
    which the kernel describes to itself.
    """
    return TensorDescriptor.from_tensor(t, block) if copy_engine(t) else t


def aligned(t: Tensor) -> Tensor:
    """`t`, or a copy, laid out for tiles.

    TMA wants neighbours in the last dimension and the rest, as the start, at multiples of 16
    bytes. Where `t` starts is not known while torch.compile traces, so there only a contiguous
    one is taken to start well. Without TMA, `t` is to be contiguous.
    """
    t = t.resolve_neg()
    if not copy_engine(t):
        return t.contiguous()
    unit = 16 // t.dtype.itemsize
    starts_well = t.is_contiguous() if torch.compiler.is_compiling() else t.data_ptr() % 16 == 0
    if starts_well and t.stride(-1) == 1 and all(s > 0 and s % unit == 0 for s in t.stride()[:-1]):
        return t
    return new_aligned(t, *t.shape).copy_(t)


def new_aligned(like: Tensor, *shape: int) -> Tensor:
    """An empty tensor laid out for tiles, which may leave a gap after each row."""
    *leading, columns = shape
    unit = 16 // like.dtype.itemsize if copy_engine(like) else 1
    return like.new_empty(*leading, ceil_div(columns, unit) * unit)[..., :columns]
