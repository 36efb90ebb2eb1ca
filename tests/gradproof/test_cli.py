"""The command: one clear line for what is wrong with it, and a report however it ends."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from gradproof.cli import main

OPS = """
    import ctypes, os, sys, time
    from pathlib import Path
    import torch
    from gradproof import Case

    class Endless(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, dy):
            (x,) = ctx.saved_tensors
            if not dy.is_contiguous():
                Path("pid").write_text(str(os.getpid()))
                ctypes.PyDLL(None).sleep(1000)  # holds the GIL: nothing written in Python can act
            return 2 * x * dy

    endless = Endless.apply

    def talks(x):
        print("to stdout")
        print("to stderr", file=sys.stderr)
        return x * x

    def raises(x):
        raise ValueError("no such thing")
"""


@pytest.fixture
def start(tmp_path, child_environment):
    """Starts `gradproof ops.py:… --inputs 'float32[3, 4]'` in a process that can be stopped."""
    (tmp_path / "ops.py").write_text(textwrap.dedent(OPS))
    started = []

    def gradproof(op, *arguments):
        started.append(
            subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "gradproof.cli",
                    op,
                    "--inputs",
                    "float32[3, 4]",
                    *arguments,
                ],
                cwd=tmp_path,
                env=child_environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return started[-1]

    yield gradproof
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def gradproof(tmp_path, monkeypatch, capsys):
    """The command's status, what it says and what it complains of; its child is real."""
    (tmp_path / "ops.py").write_text(textwrap.dedent(OPS))
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        return main([*arguments, "--inputs", "float32[3, 4]"]), *capsys.readouterr()

    return run


def test_inputs_by_shape_and_a_reference_by_name(gradproof):
    gelu = "torch.nn.functional:gelu"
    status, said, complaints = gradproof(gelu, "--reference", gelu, "--probes", "values")
    assert (status, complaints) == (0, "")
    assert "gelu(input 0: float32[3, 4]): 1 probe holds" in said


def test_what_the_op_prints_comes_once_and_apart(gradproof):
    status, said, complaints = gradproof("ops.py:talks", "--probes", "contract")
    assert status == 0
    assert "to std" not in said
    head, *lines = complaints.splitlines()
    assert head == "gradproof: printed by the op or its imports:"
    assert [line.split("  (")[0] for line in lines] == ["  to stdout", "  to stderr"]


def test_an_op_that_raises_never_passes(gradproof):
    assert gradproof("ops.py:raises", "--probes", "values")[0] == 1


def test_an_op_that_raises_fails_in_one_row(gradproof):
    status, said, _ = gradproof("ops.py:raises", "--probes", "poison,contract,values")
    assert status == 1
    assert "FAIL  contract      forward-raises" in said
    assert said.count("FAIL") == 1


def test_a_name_that_leads_nowhere_is_one_clear_line(gradproof):
    complaint = "gradproof: 'ops.py:missing': ops.py has no missing\n"
    assert gradproof("ops.py:missing") == (2, "", complaint)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM"])
def test_an_interrupt_leaves_a_report_and_no_child(start, tmp_path, name):
    process = start("ops.py:endless", "--probes", "contract,layouts,sizes")
    child = _at_work(tmp_path / "pid")
    os.killpg(process.pid, getattr(signal, name))  # as a terminal does
    said, complaints = process.communicate(timeout=60)
    assert process.returncode == 128 + getattr(signal, name)
    expected = f"interrupted by {name} during layouts; 1 of 3 probes had run"
    assert complaints == f"gradproof: {expected}\n"
    assert "ok    contract" in said
    assert "skip  layouts       interrupted" in said
    assert "skip  sizes         interrupted" in said
    assert _ends(child)


def test_no_child_outlives_a_command_that_is_killed(start, tmp_path):
    process = start("ops.py:endless", "--probes", "layouts")
    child = _at_work(tmp_path / "pid")
    process.kill()
    assert _ends(child)


def _at_work(file):
    """The process that has written its id."""
    deadline = time.monotonic() + 60
    while not (file.exists() and file.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return int(file.read_text())


def _ends(pid):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":  # dead, and not yet waited for by whoever inherited it
            return True
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    return False


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name an op, as package.module:callable"),
        (["ops:op", "--probes", "value"], "probes: no probe named 'value'; there are poison, "),
        (["ops:op", "--probes", ""], "probes: no probe named ''; there are poison, "),
        (["ops:op", "--patience", "0"], "patience: expected seconds, more than 0, got 0"),
        (["ops:op", "--patience", "-3"], "patience: expected seconds, more than 0, got -3"),
        (["ops:op", "--patience", "nan"], "patience: expected seconds, more than 0, got nan"),
        (["ops:op", "--patience", "soon"], "argument --patience: invalid float value: 'soon'"),
        (["ops:op", "--input-s", "x"], "unrecognized arguments: --input-s x"),
    ],
)
def test_a_wrong_command_line_is_one_clear_line(capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said, complaints = capsys.readouterr()
    assert (ended.value.code, said) == (2, "")
    assert complaints.startswith(f"gradproof: {message}")
    assert len(complaints.splitlines()) == 1
