"""Differentiable Triton kernels, one operation a module: `from gradkernels.gelu import gelu`.

The public functions can also be had from here; a module is imported when first asked for, so that
a program that uses one kernel depends on that kernel alone.
"""

from importlib import import_module
from typing import Any

_HOME = {
    "attention": "attention",
    "cross_entropy": "cross_entropy",
    "gelu": "gelu",
    "layer_norm": "layer_norm",
    "linear": "linear",
    "matmul": "linear",
    "rms_norm": "rms_norm",
    "scaled_silu": "scaled_silu",
    "softmax": "softmax",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
