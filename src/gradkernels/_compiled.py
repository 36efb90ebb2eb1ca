"""Launching a kernel again without asking Triton anew for its compiled form."""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from triton.runtime import driver
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

MOST_REMEMBERED = 4096  # a model whose shapes never recur must not fill the memory with them


def keeps_compiled(kernel: Any) -> Any:
    """`kernel`, with a memory: `kernel[grid](*args)` finds what it compiled for such arguments.

    Triton derives that anew at every launch, from the type, value and alignment of each argument,
    which takes as long as the launch itself. Here arguments are alike if tensors agree in dtype and
    alignment and all else is equal, which is more than Triton asks for. The interpreter, which
    compiles nothing, is left as it is, and torch.compile reads the kernel's source.

    Kernels that the first lessons take apart do without, so that these show Triton alone.

    Args:
        kernel: made by `triton.jit`. Its parameters are to be passed by position and its grid as a
            tuple of up to three sizes; launch options (`num_warps`) have names.
    """
    if not isinstance(kernel, JITFunction):
        return kernel
    compiled: dict[Any, Callable[..., Any]] = {}

    def run(*args: Any, grid: tuple[int, ...], warmup: bool, **options: Any) -> Any:
        if warmup:  # which is to compile and not to launch
            return JITFunction.run(kernel, *args, grid=grid, warmup=True, **options)
        active = driver.active
        device = active.get_current_device()
        key = (device, grid, *options.values(), *map(type, args), *map(trait, args))
        launch = compiled.get(key)
        if launch is not None:
            return launch(*args, stream=active.get_current_stream(device))
        form = JITFunction.run(kernel, *args, grid=grid, warmup=False, **options)
        if form is not None:  # as it is where a hook of Triton's keeps it from launching
            if len(compiled) == MOST_REMEMBERED:
                compiled.clear()
            compiled[key] = form[(*grid, 1, 1)[:3]]
        return form

    kernel.run = run
    return kernel


def trait(arg: Any) -> Any:
    """What the compiled form depends on in `arg`."""
    if type(arg) is int:  # as most are
        return arg
    if isinstance(arg, Tensor):
        return arg.dtype, arg.data_ptr() % 16 == 0
    if isinstance(arg, TensorDescriptor):
        return arg.base.dtype, *arg.block_shape
    return arg
