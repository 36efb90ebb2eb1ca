"""Whatever ends first, the example is told of and nothing is left running."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from captures.execute import execute
from captures.forked import ForkServer
from captures.script import read_script

GOOD = "# %% one\nprint(1 + 1)\n"


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("generations", [1, 2], ids=["guard", "server"])
def test_what_it_was_forked_from_may_be_killed(sandbox, generations: int) -> None:
    killer = """
    # %% one
    import os, time
    from pathlib import Path
    pid = os.getpid()
    for _ in range(GENERATIONS):
        pid = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1]
    print("before", flush=True)
    os.kill(int(pid), 9)
    time.sleep(60)
    """.replace("GENERATIONS", str(generations))
    sandbox.example("a/killer", killer)
    sandbox.example("a/good", GOOD)
    with ForkServer(sandbox.project, "cpu") as server:
        ends = [
            execute(read_script(sandbox.project, name), sandbox.cpu, threading.Event(), server)
            for name in ("a/good", "a/killer", "a/good")
        ]
    assert [end.failure is None for end in ends] == [True, False, True]
    assert ends[1].failure.message.startswith("was lost: the process that it was forked from")
    assert ends[1].failure.last_output == "before"


def test_an_interrupt_need_not_wait_for_imports(sandbox) -> None:
    sandbox.write("src/triton/__init__.py", "import time\ntime.sleep(60)\n")
    sandbox.example("a/one", "# %% one\nimport triton\n")
    interrupt = threading.Event()
    threading.Timer(0.7, interrupt.set).start()
    started = time.monotonic()
    failure = execute(read_script(sandbox.project, "a/one"), sandbox.cpu, interrupt).failure
    assert failure.message == "was interrupted"
    assert time.monotonic() - started < 20


ALONE = """
import sys, threading
from pathlib import Path
from captures.execute import execute
from captures.machine import Machine
from captures.project import Project
from captures.script import read_script
project = Project(Path(sys.argv[1]))
machine = Machine("cpu", "a processor", "none", "2", "3", "3.11", "Linux")
execute(read_script(project, "a/one"), machine, threading.Event())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process of this")
def test_nothing_outlives_captures_itself(sandbox, tmp_path: Path) -> None:
    note = tmp_path / "pids"
    text = """
    # %% one
    import os, time
    from pathlib import Path
    Path({note!r}).write_text(f"{{os.getpid()}} {{os.getppid()}}\\n")
    time.sleep(60)
    """
    sandbox.example("a/one", text.format(note=str(note)))
    captures = subprocess.Popen([sys.executable, "-c", ALONE, str(sandbox.project.root)])
    assert soon(lambda: note.exists() and note.read_text().endswith("\n"))
    captures.send_signal(signal.SIGKILL)
    captures.wait()
    for pid in map(int, note.read_text().split()):
        assert soon(lambda pid=pid: is_gone(pid)), f"process {pid} still runs"


def soon(happened) -> bool:
    for _ in range(200):
        if happened():
            return True
        time.sleep(0.1)
    return False


def is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # Killed, but with nobody here to reap it.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
