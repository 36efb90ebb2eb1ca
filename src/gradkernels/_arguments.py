"""What every public function does with its arguments: check them, and cast them inside autocast."""

from typing import Any

import torch
from torch import Tensor

from gradkernels import _launch

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def check_tensors(op: str, **tensors: Tensor | None) -> None:
    """Raise unless all tensors are floating, strided and on one device where kernels can run.

    Args:
        op: the public function's name, which opens the message.
        tensors: each argument by its public name; `None` (an optional one left out) is skipped.
            The first is the one whose device the others must share.
    """
    home: tuple[str, torch.device] | None = None
    for name, tensor in tensors.items():
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{op}: {name} is a {type(tensor).__name__}; expected a torch.Tensor")
        if tensor.dtype not in FLOATS:
            raise TypeError(
                f"{op}: {name} has dtype {tensor.dtype}; expected torch.float16, torch.bfloat16, "
                "torch.float32 or torch.float64"
            )
        home = _check_place(op, name, tensor, home)


def check_one_dtype(op: str, **tensors: Tensor | None) -> None:
    """Raise unless all tensors (`None` skipped) have one dtype."""
    given = {name: tensor.dtype for name, tensor in tensors.items() if tensor is not None}
    first = next(iter(given))
    for name, dtype in given.items():
        if dtype != given[first]:
            raise TypeError(
                f"{op}: {name} has dtype {dtype} and {first} {given[first]}; expected one dtype "
                "for all (inside torch.autocast they are cast)"
            )


def check_index(op: str, name: str, tensor: Tensor, home_name: str, home: Tensor) -> None:
    """Raise unless `tensor` holds int64 or int32 indices and is on the device of `home`."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{op}: {name} is a {type(tensor).__name__}; expected a torch.Tensor")
    if tensor.dtype not in (torch.int64, torch.int32):
        raise TypeError(
            f"{op}: {name} has dtype {tensor.dtype}; expected torch.int64 or torch.int32"
        )
    _check_place(op, name, tensor, (home_name, home.device))


def _check_place(
    op: str, name: str, tensor: Tensor, home: tuple[str, torch.device] | None
) -> tuple[str, torch.device]:
    if tensor.layout is not torch.strided:
        raise TypeError(f"{op}: {name} has layout {tensor.layout}; expected torch.strided")
    if home is not None and tensor.device != home[1]:
        raise ValueError(
            f"{op}: {name} is on {tensor.device} and {home[0]} on {home[1]}; "
            "expected both on one device"
        )
    if tensor.device.type != "cuda" and not (_launch.INTERPRETED and tensor.device.type == "cpu"):
        raise ValueError(
            f"{op}: {name} is on {tensor.device}; expected a CUDA device (to run on the CPU in "
            "Triton's interpreter, set TRITON_INTERPRET=1 before importing gradkernels)"
        )
    return home or (name, tensor.device)


def check_how(op: str, dw: str) -> None:
    """Raise unless `dw` names a way to add up a parameter's gradient."""
    if dw not in ("partials", "atomic"):
        raise ValueError(f'{op}: dw is {dw!r}; expected "partials" or "atomic"')


def check_trailing(op: str, x: Tensor, weight: Tensor) -> None:
    """Raise unless `x` ends in the shape of `weight`, which makes a row."""
    if weight.ndim == 0 or x.shape[-weight.ndim :] != weight.shape:
        raise ValueError(
            f"{op}: weight has shape {tuple(weight.shape)} and x {tuple(x.shape)}; "
            "expected weight to have the last dimensions of x"
        )


def autocast_to_fp32(*tensors: Any) -> tuple[Any, ...]:
    """Inside autocast, cast half precision to fp32, as torch does for norms, softmax and losses."""
    if not torch.is_autocast_enabled(tensors[0].device.type):
        return tensors
    return _cast(tensors, torch.float32)


def autocast_to_half(*tensors: Any) -> tuple[Any, ...]:
    """Inside autocast, cast to its half precision, as torch does for products of matrices."""
    device = tensors[0].device.type
    if not torch.is_autocast_enabled(device):
        return tensors
    return _cast(tensors, torch.get_autocast_dtype(device))


def _cast(tensors: tuple[Any, ...], dtype: torch.dtype) -> tuple[Any, ...]:
    # fp64 is never cast, and an optional argument may be None.
    return tuple(t if t is None or t.dtype == torch.float64 else t.to(dtype) for t in tensors)
