import os
import sys
import threading
import time
from pathlib import Path

import pytest

from captures.execute import PRINT_LIMIT, Execution, execute, legible
from captures.script import read_script


def run(sandbox, text: str, interrupt: threading.Event | None = None) -> Execution:
    sandbox.example("a/one", text)
    script = read_script(sandbox.project, "a/one")
    return execute(script, sandbox.cpu, interrupt or threading.Event())


FAILURES = {
    "an exception": (
        """
        # %% one
        print("before")
        def bad():
            raise ValueError("no\\nsecond line")
        # %% two
        bad()
        """,
        ("two", 4, "raised ValueError: no"),
    ),
    "exit 3": (
        """
        # %% one
        import sys
        print("before")
        sys.exit(3)
        """,
        ("one", 4, "left with exit status 3 before its last cell ended"),
    ),
    "exit 0 too early": (
        """
        # %% one
        print("before")
        exit()
        # %% two
        x = 1
        """,
        ("one", 3, "left with exit status 0 before its last cell ended"),
    ),
    "exit 3 at once": (
        """
        # %% one
        import os
        print("before")
        # %% two
        os._exit(3)
        """,
        ("two", 4, "ended with exit status 3 before its last cell"),
    ),
    "a segmentation fault": (
        """
        # %% one
        import ctypes
        print("before")

        ctypes.string_at(0)
        """,
        ("one", 5, "was killed by signal 11 (SIGSEGV)"),
    ),
    "kill -9": (
        """
        # %% one
        import os
        print("before")
        os.kill(os.getpid(), 9)
        """,
        ("one", 1, "was killed by signal 9 (SIGKILL)"),
    ),
    "Ctrl-C inside": (
        """
        # %% one
        import os
        print("before")
        os.kill(os.getpid(), 2)
        """,
        ("one", 4, "raised KeyboardInterrupt"),
    ),
    "a hang": (
        """
        # time limit: 1 s
        # %% one
        import time
        print("before")
        time.sleep(60)
        """,
        ("one", 5, "was still running after its time limit of 1 s"),
    ),
    "an error of several lines with a note": (
        """
        # %% one
        print("before")
        error = ValueError("first \\ud800\\x1b[31m\\nsecond")
        error.add_note("a note")
        raise error
        """,
        ("one", 5, r"raised ValueError: first \ud800\x1b[31m"),
    ),
    "a closed stdout": (
        """
        # %% one
        import sys
        print("before")
        sys.stdout.close()
        """,
        ("one", 1, "raised RuntimeError: sys.stdout or sys.stderr was left unable to flush"),
    ),
    "closed descriptors of captures": (
        """
        # %% one
        import os
        print("before")
        os.closerange(3, 64)
        """,
        ("one", 1, "ended with exit status 1 before its last cell"),
    ),
    "a print at exit": (
        """
        # %% one
        import atexit
        atexit.register(print, "before")
        """,
        ("one", 1, "printed after its last cell had ended"),
    ),
    "a thread that never ends": (
        """
        # time limit: 1 s
        # %% one
        import threading
        print("before")
        threading.Thread(target=threading.Event().wait).start()
        """,
        ("one", 2, "was still running after its time limit of 1 s"),
    ),
}


@pytest.mark.parametrize("how", FAILURES)
def test_a_failure_names_cell_line_and_last_output(sandbox, how: str) -> None:
    text, (cell, line, message) = FAILURES[how]
    failure = run(sandbox, text).failure
    assert failure is not None
    assert (failure.cell, failure.line) == (cell, line)
    assert failure.message.startswith(message)
    assert failure.last_output.startswith("before")
    assert "\n" not in failure.message
    assert "captures/child.py" not in failure.last_output


def test_a_copy_that_runs_on_is_not_recorded_twice(sandbox) -> None:
    text = """
    # %% one
    import os, time
    copy = os.fork() == 0
    # %% two
    time.sleep(0 if copy else 0.5)
    print("once")
    """
    assert run(sandbox, text).failure.message.startswith("forked a copy that ran on")


def test_noise_on_the_descriptors_of_captures_is_a_failure(sandbox) -> None:
    text = """
    # %% one
    import contextlib, os
    for number in range(3, 20):
        with contextlib.suppress(OSError):
            os.write(number, b"{}\\nnoise\\n")
    """
    assert run(sandbox, text).failure.message.endswith("wrote to descriptors it had not opened")


def test_the_traceback_begins_in_the_script(sandbox) -> None:
    failure = run(sandbox, FAILURES["an exception"][0]).failure
    assert failure.last_output.split("\n")[1].endswith('a/one.py", line 6, in <module>')


def test_endless_printing_is_stopped_while_it_is_small(sandbox) -> None:
    text = """
    # %% one
    while True:
        print("x" * 1_000_000)
    """
    started = time.monotonic()
    execution = run(sandbox, text)
    assert execution.failure.message == f"printed more than {PRINT_LIMIT / 1e6:g} MB"
    assert len(execution.failure.last_output) < 10_000
    assert time.monotonic() - started < 10


def test_a_warning_fails_and_is_shown_with_its_line(sandbox) -> None:
    failure = run(
        sandbox,
        """
        # %% one
        import warnings
        # %% two
        warnings.warn("look out")
        # %% three
        print("after")
        """,
    ).failure
    assert (failure.cell, failure.line) == ("two", 4)
    assert "stderr" in failure.message
    assert "UserWarning: look out" in failure.last_output


def test_nothing_an_example_started_outlives_it(sandbox) -> None:
    execution = run(
        sandbox,
        """
        # time limit: 1 s
        # %% one
        import subprocess, time
        print(subprocess.Popen(["sleep", "60"]).pid, flush=True)
        time.sleep(60)
        """,
    )
    sleeper = int(execution.failure.last_output.split()[0])
    for _ in range(50):
        if _is_gone(sleeper):
            return
        time.sleep(0.1)
    pytest.fail("the sleep still runs")


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Killed, but with nobody here to reap it.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_an_interrupt_kills_it_where_it_stands(sandbox) -> None:
    interrupt = threading.Event()
    threading.Timer(0.7, interrupt.set).start()
    failure = run(sandbox, FAILURES["a hang"][0].replace("1 s", "60 s"), interrupt).failure
    assert (failure.line, failure.message) == (5, "was interrupted")


def test_every_kind_of_print_is_seen_in_order(sandbox) -> None:
    execution = run(
        sandbox,
        """
        # %% one
        import ctypes, os, sys
        print("python")
        ctypes.CDLL(None).puts(b"c")
        os.system("echo process")
        os.write(1, b"descriptor\\n")
        sys.stdout.write("no newline")
        # %% two
        ctypes.CDLL(None).printf(b"again c")
        """,
    )
    assert execution.failure is None
    one, two = execution.outputs
    assert one.text == "python\nc\nprocess\ndescriptor\nno newline"
    assert two.text == "again c"


def test_what_differs_from_run_to_run_is_recorded_alike(sandbox) -> None:
    execution = run(sandbox, "# %% one\nprint(object(), __file__)\n")
    assert execution.outputs[0].text == "<object object at 0x…> …/one.py"


def test_output_is_made_legible() -> None:
    assert legible(b"\n\na\tb  \r\nc\r100%\x1b[0m\xff\n\n") == "a       b\nc\n100%\\x1b[0m\\xff"
    assert legible("π ≈ 3".encode()) == "π ≈ 3"


def test_plots_left_open_are_kept_and_repeatable(sandbox) -> None:
    text = """
    # %% one
    import matplotlib.pyplot as plt
    plt.plot([1, 2], label="line")
    plt.legend()
    # %% two tags=["measured"]
    figure, axes = plt.subplots()
    axes.plot([2, 1])
    plt.figure()
    """
    first, second = run(sandbox, text), run(sandbox, text)
    assert first.failure is None
    assert [output.figures for output in first.outputs] == [
        ("one.cpu.one.svg",),
        ("one.cpu.two.svg", "one.cpu.two.2.svg"),
    ]
    assert first.figures == second.figures
    for svg in first.figures.values():
        assert svg.count(b"<svg") == 1
        assert b"prefers-color-scheme:dark" in svg
        assert b"010203" not in svg
        assert b"Matplotlib" not in svg


def test_it_writes_nothing_beside_the_script(sandbox) -> None:
    sandbox.write("src/helper.py", "x = 1\n")
    text = "# %% one\nimport helper\nopen('stray.txt', 'w').close()\n"
    sandbox.example("a/one", text)
    before = sandbox.state()
    assert run(sandbox, text).failure is None
    assert sandbox.state().keys() == before.keys()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux hands orphans on")
@pytest.mark.parametrize("ends", ["time.sleep(60)", "pass"])
def test_what_an_example_started_ends_with_it(sandbox, tmp_path, ends: str) -> None:
    """Also where it got a session of its own, and its parent has ended."""
    started = tmp_path / "started"
    text = f"""
    # time limit: 2 s
    # %% one
    import os, time, pathlib
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            pathlib.Path("{started}").write_text(str(os.getpid()))
            time.sleep(60)
        os._exit(0)
    while not os.path.exists("{started}") or not os.path.getsize("{started}"):
        time.sleep(0.01)
    {ends}
    """
    failure = run(sandbox, text).failure
    assert (failure is None) == (ends == "pass")
    assert not Path(f"/proc/{started.read_text()}").exists()
