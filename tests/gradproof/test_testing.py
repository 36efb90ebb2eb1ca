"""In pytest, each probe is a test, and a process that dies fails one of them."""

import subprocess
import sys
import textwrap

import pytest

from gradproof.testing import one_test_per_probe

# Found by pytest, which adds its folder to the import path; the child has to find it there too.
OPS = """
    import os, signal
    import torch
    from gradproof import Case

    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            print("the forward is called")
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            if not dy.is_contiguous():
                os.kill(os.getpid(), signal.SIGSEGV)
            return 2 * x * dy

    square = Square.apply
    inputs = (torch.ones(3, 4) / 3,)
"""

TESTS = """
    import ops, torch
    from gradproof import Case
    from gradproof.testing import one_test_per_probe

    def fault():
        return Case(ops.square, ops.inputs, torch.square)

    def number():
        return 5

    test_fault = one_test_per_probe(fault, probes=["writes", "layouts", "composition"])
    test_number = one_test_per_probe(number, probes=["writes"])
"""

AFTERWARDS = """
    import os, pytest

    def test_no_child_is_left():
        with pytest.raises(ChildProcessError):
            os.waitpid(-1, os.WNOHANG)
"""


def test_one_pytest_test_for_each_probe(tmp_path, child_environment):
    (tmp_path / "lib").mkdir()
    for name, text in (("lib/ops", OPS), ("test_a", TESTS), ("test_b", AFTERWARDS)):
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-o", "pythonpath=lib", "test_a.py", "test_b.py"),
        ],
        cwd=tmp_path,
        env=child_environment,
        capture_output=True,
        text=True,
    )
    assert "2 failed, 3 passed" in done.stdout
    assert "illegal-address: the op died with a memory fault" in done.stdout
    assert "test_a.py:number' returns an int, not a Case" in done.stdout
    assert "Traceback" not in done.stdout
    assert "During handling" not in done.stdout
    # What the op printed stands with the test that failed, once.
    assert done.stdout.count("the forward is called") == 1


@pytest.mark.parametrize("case", [lambda: None, 5])
def test_a_case_has_to_be_found_by_name(case):
    with pytest.raises(TypeError, match="case: expected a function at the top level of a file"):
        one_test_per_probe(case)


def case_at_the_top():
    raise AssertionError("only its name is used")


def test_patience_is_a_time():
    with pytest.raises(ValueError, match="patience: expected seconds, more than 0, got 0"):
        one_test_per_probe(case_at_the_top, patience=0)
