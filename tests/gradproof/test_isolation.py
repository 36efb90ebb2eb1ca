"""A crash or a hang in the op is a finding, and the probes after it still run."""

import os
import re
import subprocess
import sys
import textwrap

import pytest

from gradproof.load import UnusableError, load_case

OPS = """
    import ctypes, os, signal, time
    import torch
    from gradproof import Case

    def function(on_strided_dy):
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, dy):
                (x,) = ctx.saved_tensors
                if not dy.is_contiguous():
                    on_strided_dy()
                return 2 * x * dy

        return Case(Square.apply, (torch.ones(3, 4) / 3,), torch.square)

    def fault():
        return function(lambda: os.kill(os.getpid(), signal.SIGSEGV))

    def endless():
        return function(lambda: time.sleep(1000))

    def fine():
        return function(lambda: None)
"""


@pytest.fixture
def gradproof(tmp_path, child_environment):
    (tmp_path / "ops.py").write_text(textwrap.dedent(OPS))

    def run(*arguments):
        command = [sys.executable, "-m", "gradproof.cli", *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=child_environment, capture_output=True, text=True
        )

    return run


def test_a_fault_is_reported_and_the_next_probe_runs(gradproof):
    done = gradproof("ops.py:fault", "--probes", "writes,layouts,composition")
    assert done.returncode == 1
    assert "illegal-address: the op died with a memory fault" in done.stdout
    assert "the process died of SIGSEGV during the probe" in done.stdout
    assert "FAIL  layouts" in done.stdout
    assert "ok    writes" in done.stdout
    assert "ok    composition" in done.stdout
    assert done.stderr == ""


def test_a_hang_is_reported(gradproof):
    done = gradproof("ops.py:endless", "--probes", "layouts", "--patience", "2")
    assert done.returncode == 1
    assert "hang: the op did not come back" in done.stdout


def test_inputs_by_shape_and_a_reference_by_name(gradproof):
    done = gradproof(
        "torch.nn.functional:gelu",
        *("--inputs", "float32[2, 3]", "--reference", "torch.nn.functional:gelu"),
        *("--probes", "values"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "gelu(input 0: float32[2, 3]): 1 probe holds" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["torch:exp", "--inputs", "flt[3]"], "inputs 'flt[3]': expected"),
        (["ops.py:fine", "--probes", "value"], "no probe named 'value'"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(gradproof, arguments, message):
    done = gradproof(*arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere:op"], "no module named 'nowhere', wanted for 'nowhere'"),
        (["ops.py:missing"], "'ops.py:missing': ops.py has no missing"),
        (["missing.py:op"], "no file 'missing.py'"),
        (["ops"], "'ops': expected package.module:name or path/to/file.py:name"),
        (["torch:exp"], "'torch:exp' is no Case and returns none: give its inputs"),
        (["torch:exp", "float32[3]", "torch:pi"], "'torch:pi': expected a callable, got float"),
    ],
)
def test_what_a_name_leads_to_is_said_in_one_line(tmp_path, monkeypatch, arguments, message):
    (tmp_path / "ops.py").write_text(textwrap.dedent(OPS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    with pytest.raises(UnusableError, match=f"^{re.escape(message)}$"):
        load_case(*arguments)
    sys.modules.pop("_gradproof_ops_py", None)


def test_one_pytest_test_for_each_probe(tmp_path, child_environment):
    (tmp_path / "ops.py").write_text(textwrap.dedent(OPS))
    (tmp_path / "test_square.py").write_text(
        textwrap.dedent("""
        import ops
        from gradproof.testing import one_test_per_probe

        def fine():
            return ops.fine()

        def fault():
            return ops.fault()

        test_fine = one_test_per_probe(fine, probes=["writes", "layouts"])
        test_fault = one_test_per_probe(fault, probes=["writes", "layouts"])
        """)
    )
    path = os.pathsep.join([child_environment["PYTHONPATH"], str(tmp_path)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_square.py"],
        cwd=tmp_path,
        env={**child_environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert "1 failed, 3 passed" in done.stdout
    assert "illegal-address: the op died with a memory fault" in done.stdout
