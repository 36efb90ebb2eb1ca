"""The same values in other layouts, as autograd and views hand them over."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

GAP = 37.0  # between the elements of a sliced layout: finite, and never the right value


def rearranged(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Layouts of `tensor` that keep its values, each with a name that says where it comes from."""
    if tensor.ndim >= 2:
        yield "transposed, as .t() leaves it", _stored_by(tensor, _swap_last(tensor.ndim))
    if tensor.ndim >= 4:
        heads_apart = [0, 2, 1, *range(3, tensor.ndim)]
        yield "with dimensions 1 and 2 swapped, as heads are", _stored_by(tensor, heads_apart)
    if tensor.ndim >= 3:
        yield "stored last dimension first", _stored_by(tensor, list(range(tensor.ndim))[::-1])
    if tensor.ndim >= 1:
        yield "sliced [..., ::2]", with_gaps(tensor)
    if tensor.ndim >= 2:
        yield "sliced out of longer rows, as cat and split leave it", _out_of_longer_rows(tensor)
    yield "offset by one element", _offset(tensor)


def expanded(tensor: Tensor) -> Iterator[tuple[str, Tensor]]:
    """Layouts with stride 0; they change the values, so compare with their own contiguous copy."""
    if tensor.ndim == 0 or tensor.numel() == 0:
        return
    yield (
        "expanded from one element, as .sum() leaves it",
        tensor.flatten()[:1].view([1] * tensor.ndim).expand(tensor.shape),
    )
    if tensor.ndim >= 2:
        yield (
            "expanded along its rows, as .sum(-1) leaves it",
            tensor[..., :1].contiguous().expand(tensor.shape),
        )
        yield (
            "expanded along its columns, as .sum(0) leaves it",
            tensor[:1].contiguous().expand(tensor.shape),
        )


def _swap_last(ndim: int) -> list[int]:
    order = list(range(ndim))
    order[-1], order[-2] = order[-2], order[-1]
    return order


def _stored_by(tensor: Tensor, order: list[int]) -> Tensor:
    inverse = [order.index(d) for d in range(len(order))]
    return tensor.permute(order).contiguous().permute(inverse)


def with_gaps(tensor: Tensor) -> Tensor:
    """Every second element of longer rows."""
    shape = [*tensor.shape[:-1], 2 * tensor.shape[-1]]
    buffer = torch.full(shape, GAP, dtype=tensor.dtype, device=tensor.device)
    view = buffer[..., ::2]
    view.copy_(tensor)
    return view


def _out_of_longer_rows(tensor: Tensor) -> Tensor:
    shape = [*tensor.shape[:-1], tensor.shape[-1] + 3]
    buffer = torch.full(shape, GAP, dtype=tensor.dtype, device=tensor.device)
    view = buffer[..., : tensor.shape[-1]]
    view.copy_(tensor)
    return view


def _offset(tensor: Tensor) -> Tensor:
    buffer = torch.full((tensor.numel() + 1,), GAP, dtype=tensor.dtype, device=tensor.device)
    view = buffer[1:].view(tensor.shape)
    view.copy_(tensor)
    return view
