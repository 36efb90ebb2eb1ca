"""An example that was forked is told nothing else than a fresh interpreter would tell it."""

import subprocess
import sys
import threading

import pytest

from captures.execute import Execution, execute
from captures.forked import ForkServer
from captures.machine import environment
from captures.normalise import normalise
from captures.script import read_script


@pytest.fixture
def run(sandbox):
    """Runs scripts one after the other in the same fork server."""
    with ForkServer(sandbox.project, "cpu") as server:

        def run(text: str) -> Execution:
            sandbox.example("a/one", text)
            script = read_script(sandbox.project, "a/one")
            return execute(script, sandbox.cpu, threading.Event(), server)

        yield run


def said(execution: Execution) -> str:
    assert execution.failure is None, execution.failure
    return execution.outputs[0].text


def triton(sandbox, text: str) -> None:
    """A triton of the project's own, which hides the real one and is imported at once."""
    sandbox.write("src/triton/__init__.py", text)
    sandbox.write("src/triton/language.py", "")


STATE = """
# %% one
import gc, locale, os, random, resource, signal, sys, threading, warnings
print(__name__, sys.argv[1:], sys.path[1:], sys.flags, sys.getrecursionlimit())
print([signal.getsignal(number) for number in sorted(signal.valid_signals())][:31])
print(signal.pthread_sigmask(signal.SIG_BLOCK, []), os.umask(0), locale.getlocale())
print(os.getpid() == os.getsid(0) == os.getpgid(0), threading.active_count())
print(gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.garbage)
print(sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, sys.stdin.isatty())
print(resource.getrlimit(resource.RLIMIT_NOFILE), sys.gettrace(), sys.excepthook)
print(set(globals()) - {"__builtins__", "__cached__", "__annotations__"})
import torch, torch._dynamo
print(warnings.filters)
print(torch.get_default_dtype(), torch.get_num_threads(), torch.cuda.is_initialized())
"""


def test_it_finds_what_a_fresh_interpreter_finds(sandbox, run) -> None:
    before = "import torch\ntorch.set_num_threads(2)\ntorch.set_default_dtype(torch.half)\n"
    assert run(f"# %% one\n{before}").failure is None
    forked = said(run(STATE))
    fresh = subprocess.run(
        [sys.executable, str(sandbox.project.examples / "a/one.py")],
        env=environment(sandbox.project, "cpu"),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        start_new_session=True,
        check=True,
    ).stdout
    assert forked.split("\n") == normalise(fresh.rstrip()).split("\n")


def test_it_holds_no_descriptor_but_its_own(run) -> None:
    text = "# %% one\nimport os\nprint(len(os.listdir('/dev/fd')), os.listdir())\n"
    in_and_out, channels, listing = 3, 3, 1
    assert said(run(text)) == f"{in_and_out + channels + listing} []"


def test_one_example_leaves_nothing_to_the_next(sandbox, run) -> None:
    sandbox.write("src/helper.py", "seen = []\n")
    text = """
    # %% one
    import os, random, helper
    helper.seen.append(1)
    print(helper.seen, os.environ.pop("TERM"))
    """
    assert [said(run(text)), said(run(text))] == ["[1] dumb"] * 2


def test_what_is_slow_to_import_is_imported_once(sandbox, run) -> None:
    triton(sandbox, "import os\nhere = os.getpid()\n")
    text = "# %% one\nimport os\nimport triton\nprint(triton.here, triton.here == os.getpid())\n"
    first, second = said(run(text)), said(run(text))
    assert first == second
    assert first.endswith("False")


def test_what_is_missing_is_missed_by_the_example_alone(sandbox, run) -> None:
    triton(sandbox, "raise ImportError('no triton here')\n")
    assert said(run("# %% one\nif False:\n    import triton\nprint('none')\n")) == "none"
    failure = run("# %% one\nimport triton\n").failure
    assert failure.message == "raised ImportError: no triton here"


def test_what_an_import_complains_of_fails_every_example(sandbox, run) -> None:
    triton(sandbox, "import warnings\nwarnings.warn('an old GPU')\n")
    for _ in range(2):
        failure = run("# %% one\nimport triton\n").failure
        assert "stderr" in failure.message
        assert "an old GPU" in failure.last_output
