"""Compile every kernel for GPUs that this machine need not have, and print what each one uses.

    python tests/kernels/compile_matrix.py [dtype:capability ...] > tests/kernels/compile_matrix.txt

The public functions run forward and backward on the CPU, and each launch on the way, instead of
running, compiles its kernel with the very signature, block sizes and options of the launch.
"""

import os

os.environ["TRITON_INTERPRET"] = "0"

import inspect
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import CompiledKernel
from triton.runtime.jit import JITFunction, MockTensor

import gradkernels
from gradkernels import _launch, _tiles, _wide_norm

CAPABILITIES = (80, 90, 100)
SHARED_MEMORY = {80: 163 << 10, 90: 227 << 10, 100: 227 << 10}
DTYPES = ("float16", "bfloat16", "float32", "float64")
BIN = Path(triton.__file__).parent / "backends/nvidia/bin"


def operations(dtype: torch.dtype) -> Iterator[Callable[[], Tensor]]:
    """Each public function on shapes that between them reach every kernel and every branch."""
    from gradkernels.attention import attention
    from gradkernels.cross_entropy import cross_entropy
    from gradkernels.gelu import gelu
    from gradkernels.layer_norm import layer_norm
    from gradkernels.linear import linear
    from gradkernels.rms_norm import rms_norm
    from gradkernels.scaled_silu import scaled_silu
    from gradkernels.softmax import softmax

    def t(*shape: int) -> Tensor:
        return torch.empty(shape, dtype=dtype, requires_grad=True)

    # Rows enough for every program that a GPU has room for; nothing touches their memory.
    rows = 1024
    target = torch.zeros(rows, dtype=torch.int64)
    yield lambda: gelu(t(1 << 16))
    for dw in ("partials", "atomic"):
        yield lambda dw=dw: scaled_silu(t(1 << 16), t(1), dw)
        yield lambda dw=dw: rms_norm(t(rows, 1024), t(1024), dw=dw)
    for n in (1152, 4096, 16384, 20480, 1 << 17):
        yield lambda n=n: rms_norm(t(rows, n), t(n))
        yield lambda n=n: layer_norm(t(rows, n), t(n), t(n))
        yield lambda n=n: softmax(t(rows, n))
    yield lambda: cross_entropy(t(rows, 1 << 17), target)
    for tokens, out in ((8192, 4096), (16, 64)):
        yield lambda tokens=tokens, out=out: linear(t(tokens, 256), t(out, 256), t(out))
    for head, causal in ((64, False), (128, False), (128, True), (256, True)):
        yield lambda head=head, causal=causal: attention(
            t(1, 2, 256, head), t(1, 2, 256, head), t(1, 2, 256, head), causal
        )


class Pretence:
    """Stands where Triton looks for a GPU; each capability is a device of its own."""

    capability = 0

    def get_current_device(self) -> int:
        return self.capability

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.capability, 32)

    def get_current_stream(self, device: int) -> int:
        return 0


def compile_launches(dtype: torch.dtype, capability: int) -> dict[str, tuple[int, ...]]:
    """What `usage` says of each kernel, the largest of its variants, after how many they are."""
    found: dict[str, set[tuple[int, ...]]] = {}
    run = JITFunction.run

    def compile_only(self: JITFunction, *args: object, warmup: bool, **kwargs: object) -> None:
        mocked = [MockTensor(a.dtype) if isinstance(a, Tensor) else a for a in args]
        binary = run(self, *mocked, warmup=True, **kwargs)
        found.setdefault(self.__name__, set()).add(usage(binary))

    # So that tensors on the CPU pass the checks, and launchers take what the GPU would offer.
    _launch.INTERPRETED = True
    tiler = _tiles.Tiler(capability >= 90, SHARED_MEMORY[capability], traced=False)
    _tiles.tiler_of = lambda device: tiler
    for module in (_launch, _wide_norm):
        module.multiprocessors = lambda t: 132
    _launch.shared_memory = lambda t: SHARED_MEMORY[capability]
    pretence = Pretence()
    pretence.capability = capability
    triton.runtime.driver.set_active(pretence)
    JITFunction.run = compile_only
    try:
        for operation in operations(dtype):
            y = operation()
            y.backward(torch.empty_like(y))
    finally:
        JITFunction.run = run
    return {
        name: (len(uses), *(max(column) for column in zip(*uses, strict=True)))
        for name, uses in sorted(found.items())
    }


@cache
def usage(binary: CompiledKernel) -> tuple[int, int, int]:
    """Registers, bytes of stack, which a kernel has only to spill into, and serialised wgmma.

    wgmma instructions run one behind the other, each waited for, where the assembler finds other
    instructions at their accumulators in between: it then warns, and half of the speed is gone.
    """
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder, "kernel.ptx")
        ptx.write_text(binary.asm["ptx"])
        arch = re.search(r"\.target (\w+)", binary.asm["ptx"])[1]
        ptxas = BIN / ("ptxas-blackwell" if arch >= "sm_100" and len(arch) > 5 else "ptxas")
        command = [ptxas, "-v", f"--gpu-name={arch}", ptx, "-o", Path(folder, "kernel.cubin")]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    registers = re.search(r"Used (\d+) registers", report)[1]
    stack = re.search(r"(\d+) bytes stack frame", report)[1]
    return int(registers), int(stack), int("wgmma.mma_async instructions are serialized" in report)


def kernels() -> set[str]:
    """The names of all kernels of the package."""
    names = (path.stem for path in Path(inspect.getfile(gradkernels)).parent.glob("*.py"))
    modules = [import_module(f"gradkernels.{name}") for name in names]
    jitted = [f for module in modules for f in vars(module).values() if isinstance(f, JITFunction)]
    return {f.__name__ for f in jitted if f.__name__.endswith("_kernel")}


def main(asked: list[str]) -> None:
    print(f"# triton {triton.__version__}")
    print("# kernel dtype target variants registers stack-bytes serialised")
    missed = kernels()
    for pair in asked:
        dtype, capability = pair.split(":")
        uses = compile_launches(getattr(torch, dtype), int(capability))
        missed -= set(uses)
        for name, figures in uses.items():
            print(name, dtype, f"sm_{capability}", *figures, flush=True)
    if missed:
        raise SystemExit(f"no operation above launches {', '.join(sorted(missed))}")


if __name__ == "__main__":
    main(
        sys.argv[1:] or [f"{dtype}:{capability}" for dtype in DTYPES for capability in CAPABILITIES]
    )
