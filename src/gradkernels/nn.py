"""The operations as modules, to put in place of `torch.nn`'s; their state dicts are the same."""

from typing import Literal

import torch
from torch import Tensor, nn

from gradkernels.cross_entropy import cross_entropy
from gradkernels.gelu import gelu
from gradkernels.layer_norm import layer_norm
from gradkernels.linear import linear
from gradkernels.rms_norm import rms_norm
from gradkernels.scaled_silu import scaled_silu
from gradkernels.softmax import softmax


class GELU(nn.Module):
    """`gelu` as a module."""

    def forward(self, x: Tensor) -> Tensor:
        return gelu(x)


class ScaledSiLU(nn.Module):
    """`scaled_silu` with its scale w, which starts at 1."""

    def __init__(
        self, device: torch.device | str | None = None, dtype: torch.dtype | None = None
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones((), device=device, dtype=dtype))

    def forward(self, x: Tensor) -> Tensor:
        return scaled_silu(x, self.weight)


class RMSNorm(nn.RMSNorm):
    """`torch.nn.RMSNorm` with weights, computed by `rms_norm`."""

    weight: nn.Parameter

    def forward(self, x: Tensor) -> Tensor:
        return rms_norm(x, self.weight, self.eps)


class LayerNorm(nn.LayerNorm):
    """`torch.nn.LayerNorm` with weights, computed by `layer_norm`."""

    def forward(self, x: Tensor) -> Tensor:
        return layer_norm(x, self.weight, self.bias, self.eps)


class Linear(nn.Linear):
    """`torch.nn.Linear`, computed by `linear`."""

    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


class Softmax(nn.Module):
    """`softmax` as a module: over the last dimension."""

    def forward(self, x: Tensor) -> Tensor:
        return softmax(x)


class CrossEntropyLoss(nn.Module):
    """`cross_entropy` as a module."""

    def __init__(
        self, ignore_index: int = -100, reduction: Literal["mean", "sum", "none"] = "mean"
    ) -> None:
        super().__init__()
        self.ignore_index = ignore_index
        self.reduction: Literal["mean", "sum", "none"] = reduction

    def forward(self, logits: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(logits, target, self.ignore_index, self.reduction)
