"""A process that has imported what examples import, and becomes a copy of itself for each of them.

``python -m captures.fork_server DESCRIPTOR``, where the descriptor is a socket. A byte on it asks
for one example and brings a job file and the ends of five pipes; see ``captures.forked``.
"""

import contextlib
import gc
import importlib
import json
import os
import re
import signal
import socket
import sys
from typing import Any

from captures.child import die_with_parent, main
from captures.orphans import adopt_orphans, kill_children

# Slow to import; whatever else they need comes with them, also what torch imports late.
_SLOW = {
    "torch": "torch.testing._internal.optests",
    "triton": "triton.language",
    "matplotlib": "matplotlib.pyplot",
}
_IMPORTS = re.compile(rf"^\s*(?:import|from) ({'|'.join(_SLOW)})\b", re.MULTILINE)


def serve(control: socket.socket) -> dict[str, Any] | None:
    """Return in a new process for each job, and once in this one, with None, at the end."""
    # The system buries the guards; nobody here asks how they ended.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        asked, descriptors, _, _ = socket.recv_fds(control, 1, 7)
        if not asked:
            return None
        with open(descriptors[0], encoding="utf-8", closefd=False) as file:
            job = json.load(file)
        _import_ahead(job["text"])
        complaints = os.pread(sys.stderr.fileno(), 65536, 0)
        if os.fork() == 0:
            _guard(control.detach(), *descriptors)
            # What an import complained of is said to every example, as if it had imported anew.
            os.write(sys.stderr.fileno(), complaints)
            os.chdir(job["cwd"])
            return job | dict(zip(("events", "stacks", "answers"), descriptors[4:], strict=True))
        for descriptor in descriptors:
            os.close(descriptor)


def _import_ahead(text: str) -> None:
    """Import what the script will, here and for good. It learns itself of what is missing."""
    if os.environ.get("TRITON_INTERPRET") != "1":
        return  # on a GPU an import may start CUDA, which does not survive a fork
    for name in set(_IMPORTS.findall(text)) - sys.modules.keys():
        with contextlib.suppress(Exception):
            importlib.import_module(_SLOW[name])
        # A collection that comes due in the example would be of garbage left here.
        gc.collect()


def _guard(control: int, job: int, status: int, out: int, err: int, *others: int) -> None:
    """Return in a child; here, report on ``status`` how it ended, and end.

    A server with many examples to wait for could not wait for the next job as well.
    """
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    die_with_parent()
    adopt_orphans()
    child = os.fork()
    if child == 0:
        os.dup2(out, sys.stdout.fileno())
        os.dup2(err, sys.stderr.fileno())
        os.setsid()
        # Only now, so that whoever knows the process can kill its whole group.
        os.write(status, b"%d\n" % os.getpid())
        others = (status,)
    for descriptor in (control, job, out, err, *others):
        os.close(descriptor)
    if child:
        _, ended = os.waitpid(child, 0)
        kill_children()
        with contextlib.suppress(BrokenPipeError):
            os.write(status, b"%d %d\n" % (child, os.waitstatus_to_exitcode(ended)))
        os._exit(0)


if __name__ == "__main__":
    job = serve(socket.socket(fileno=int(sys.argv[1])))
    status = main(job) if job else 0
    # At its end an interpreter looks for cycles again and again, in all that was imported.
    gc.freeze()
    sys.exit(status)
