"""Every kernel compiles for every dtype and target, and uses no more than it is known to use."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import triton

HERE = Path(__file__).parent
TABLE = HERE / "compile_matrix.txt"
TARGETS = (80, 90, 100)


def rows(text):
    """(kernel, dtype, target): its figures."""
    lines = (line.split() for line in text.splitlines() if not line.startswith("#"))
    return {tuple(line[:3]): [int(figure) for figure in line[3:]] for line in lines}


def measure(*pairs):
    source = str(HERE.parent.parent / "src")
    done = subprocess.run(
        [sys.executable, str(HERE / "compile_matrix.py"), *pairs],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": source, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def hold(text):
    """Fail where a figure is above the table's; other versions of Triton use other registers."""
    known, found = rows(TABLE.read_text(encoding="utf-8")), rows(text)
    if TABLE.read_text(encoding="utf-8").splitlines()[0] != f"# triton {triton.__version__}":
        pytest.skip(f"{TABLE.name} was made by another Triton than {triton.__version__}")
    grown = {
        row: (figures, known.get(row))
        for row, figures in found.items()
        if row not in known or any(f > k for f, k in zip(figures, known[row], strict=True))
    }
    assert not grown, (
        "figures above the table's (found, known): variants, registers, stack bytes, serialised.\n"
        "If it is meant so, run tests/kernels/compile_matrix.py > tests/kernels/compile_matrix.txt"
        + "".join(f"\n{' '.join(row)} {figures}" for row, figures in grown.items())
    )


def test_bf16_on_sm_90():
    hold(measure("bfloat16:90"))


@pytest.mark.soak
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_every_dtype_on_every_target(dtype, target):
    hold(measure(f"{dtype}:{target}"))


def test_the_table_knows_every_kernel_dtype_and_target():
    known = rows(TABLE.read_text(encoding="utf-8"))
    names = {kernel for kernel, _, _ in known}
    dtypes = ("float16", "bfloat16", "float32", "float64")
    assert set(known) == {(n, d, f"sm_{t}") for n in names for d in dtypes for t in TARGETS}


def test_no_kernel_for_sm_90_spills_in_half_precision():
    """But norms, and softmax's forward of a row in two blocks, where ptxas settles for 32 registers
    and two more words."""
    for (kernel, dtype, target), (_, _, stack, _) in rows(
        TABLE.read_text(encoding="utf-8")
    ).items():
        if target == "sm_90" and dtype in ("float16", "bfloat16") and "norm" not in kernel:
            known = 8 if kernel == "softmax_kernel" else 0
            assert stack <= known, f"{kernel} {dtype} spills {stack} bytes"
