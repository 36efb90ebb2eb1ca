"""Tiles of tensors, which the GPU's copy engine (TMA) fetches where it has one, from sm_90 on."""

from typing import Any

import torch
import triton
from torch import Tensor
from triton.tools.tensor_descriptor import TensorDescriptor


def copy_engine(t: Tensor) -> bool:
    """Whether tiles of `t` can be fetched by TMA, which the interpreter imitates."""
    return not t.is_cuda or torch.cuda.get_device_capability(t.device) >= (9, 0)


def shared_memory(t: Tensor) -> int:
    """How many bytes of shared memory one program on the device of `t` can have."""
    if not t.is_cuda:
        return 227 << 10
    properties: Any = torch.cuda.get_device_properties(t.device)
    return properties.shared_memory_per_block_optin


def tiled(t: Tensor, block: list[int]) -> TensorDescriptor | Tensor:
    """`t` as a kernel takes it to load tiles of the shape `block`, zero where they leave `t`.

    Without TMA that is a contiguous tensor, which the kernel describes to itself.
    """
    t = aligned(t)
    return TensorDescriptor.from_tensor(t, block) if copy_engine(t) else t


def aligned(t: Tensor) -> Tensor:
    """`t`, or a copy, as TMA wants it: neighbours in the last dimension, all else 16 bytes apart.

    Without TMA, contiguous.
    """
    t = t.resolve_neg()
    if not copy_engine(t):
        return t.contiguous()
    unit = 16 // t.element_size()
    start = t.storage_offset() if torch.compiler.is_compiling() else t.data_ptr() // t.element_size()
    if t.stride(-1) == 1 and start % unit == 0 and all(s and s % unit == 0 for s in t.stride()[:-1]):
        return t
    columns = t.shape[-1]
    room = t.new_empty(*t.shape[:-1], triton.cdiv(columns, unit) * unit)
    return room[..., :columns].copy_(t)
