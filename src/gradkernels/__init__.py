"""Differentiable Triton kernels, one operation a module: `from gradkernels.gelu import gelu`.

A module is imported when first asked for, so that a program that uses one kernel depends on that
kernel alone. Functions bear the names of their modules, so they are not repeated here.
"""

from importlib import import_module
from types import ModuleType

__all__ = [
    "attention",
    "cross_entropy",
    "gelu",
    "layer_norm",
    "linear",
    "nn",
    "rms_norm",
    "scaled_silu",
    "softmax",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
