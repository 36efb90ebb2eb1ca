"""What an example started and left: found and killed also where it has a session of its own."""

import contextlib
import ctypes
import os
import signal
from pathlib import Path


def adopt_orphans() -> None:
    """Be given the processes whose parent ends, as far down as they go; on Linux only."""
    if _children() is not None:
        set_child_subreaper = 36
        ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0)


def kill_children() -> None:
    """Kill what was adopted, and what is adopted because of that."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for pid in _children() or ():
                os.kill(pid, signal.SIGKILL)
            os.waitpid(-1, 0)


def _children() -> list[int] | None:
    try:
        return [
            int(pid) for pid in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
        ]
    except OSError:
        return None
