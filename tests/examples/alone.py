"""Runs scripts where this project cannot be imported: `python -I alone.py`, one JSON a line.

torch is imported once, with what its checkers import late, and each script runs in a fork, since
importing it takes longer than most scripts do. A script sees an empty directory and nothing of
this project, installed or not.
"""

import gc
import json
import os
import runpy
import signal
import sys
import traceback
from pathlib import Path

OURS = ("captures", "formulas", "gradkernels", "gradproof")


class Absent:
    """Stands before every other finder and knows nothing of this project."""

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in OURS:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def run(script: str, directory: str, seconds: int, before: str, after: str) -> None:
    """In the child: the script as `python script` would run it, with its output in files.

    `before` and `after` run around it, in a namespace of their own.
    """
    os.chdir(directory)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(f"{script}.{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
    signal.alarm(seconds)
    status = 0
    around: dict = {}
    try:
        exec(before, around)
        runpy.run_path(script, run_name="__main__")
    except BaseException:
        traceback.print_exc()
        status = 1
    exec(after, around)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    sys.meta_path.insert(0, Absent())
    os.environ |= {"TRITON_INTERPRET": "1", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    import torch.testing._internal.optests  # noqa: F401
    import triton  # noqa: F401

    # What was imported stays: no collection in a script need look through it again.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            run(**order)
        _, status = os.waitpid(child, 0)
        out, err = (Path(f"{order['script']}.{name}") for name in ("stdout", "stderr"))
        answer = {"status": status, "stdout": out.read_text(), "stderr": err.read_text()}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
