"""Launching a kernel again without asking Triton anew for its compiled form."""

from typing import Any

from torch import Tensor
from triton import knobs
from triton.runtime import driver
from triton.runtime.jit import JITFunction
from triton.tools.tensor_descriptor import TensorDescriptor

MOST_REMEMBERED = 4096  # a model whose shapes never recur must not fill the memory with them


def keeps_compiled(kernel: Any) -> Any:
    """`kernel`, with a memory: `kernel[grid](*args)` finds what it compiled for such arguments.

    Triton derives that anew at every launch, from the type, value and alignment of each argument,
    which takes as long as the launch itself. Here arguments are alike if tensors agree in dtype and
    alignment and all else is equal, which is more than Triton asks for. Where a profiler has hooked
    into launches, they are Triton's own; the interpreter, which compiles nothing, is left as it is,
    and torch.compile reads the kernel's source.

    Kernels that the first lessons take apart do without, so that these show Triton alone.

    Args:
        kernel: made by `triton.jit`. Its parameters are to be passed by position and its grid as a
            tuple of up to three sizes; launch options (`num_warps`) have names.
    """
    if not isinstance(kernel, JITFunction):
        return kernel
    compiled: dict[Any, tuple[Any, ...]] = {}

    def run(*args: Any, grid: tuple[int, ...], warmup: bool, **options: Any) -> Any:
        if warmup:  # which is to compile and not to launch
            return JITFunction.run(kernel, *args, grid=grid, warmup=True, **options)
        active = driver.active
        device = active.get_current_device()
        traits, passed = take_apart(args)
        key = (device, grid, *options.items(), *map(type, args), *traits)
        found = compiled.get(key)
        if found is not None and not hooked():
            launch, sizes, *form = found
            return launch(
                *sizes, active.get_current_stream(device), *form, None, None, None, *passed
            )
        form = JITFunction.run(kernel, *args, grid=grid, warmup=False, **options)
        if form is not None:  # as it is where a hook of Triton's keeps it from launching
            if len(compiled) == MOST_REMEMBERED:
                compiled.clear()
            sizes = (*grid, 1, 1)[:3]
            compiled[key] = form.run, sizes, form.function, form.packed_metadata
        return form

    kernel.run = run
    return kernel


def hooked() -> bool:
    """Whether somebody wants to hear of launches, with what Triton says of each."""
    return bool(knobs.runtime.launch_enter_hook.calls or knobs.runtime.launch_exit_hook.calls)


def take_apart(args: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """What the compiled form depends on in `args`, and `args` as it takes them.

    It takes an address where there is a tensor, and else asks the driver what each pointer is.
    """
    traits: list[Any] = []
    passed: list[Any] = []
    for arg in args:
        if isinstance(arg, Tensor):
            address = arg.data_ptr()
            traits += arg.dtype, arg.is_cuda, address % 16 == 0
            passed.append(address)
        elif isinstance(arg, TensorDescriptor):
            traits += arg.base.dtype, *arg.block_shape
            passed.append(arg)
        else:
            traits.append(arg)
            passed.append(arg)
    return traits, passed
