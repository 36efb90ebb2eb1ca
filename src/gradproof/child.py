"""The process in which an isolated op runs: a probe's name comes in, its result goes out.

Requests are lines, answers are lines of JSON, on a socket of their own: stdin, stdout and stderr
belong to the op. The answers, in order: `loaded`, or `unusable`; `description`, once the op was
called for the first time; a `result` for each request. `broke` in place of any of these is a
mistake of gradproof. Between them, before each call, `calling` says of what and with what.
"""

from __future__ import annotations

import faulthandler
import fcntl
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from traceback import extract_tb
from typing import Any

from gradproof import passes
from gradproof.load import load_case
from gradproof.probes import PROBES
from gradproof.prove import Prover
from gradproof.subject import Subject


def serve(channel: socket.socket, arguments: list[str | None], planned: list[str]) -> None:
    lines = channel.makefile("rw", encoding="utf-8")

    def answer(**message: Any) -> None:
        print(json.dumps(message), file=lines, flush=True)

    try:
        case = load_case(*arguments)  # type: ignore[arg-type]
        answer(loaded=True)
        subject = Subject.of(case)
        passes.announce = lambda op, inputs: answer(calling=_call(subject, op, inputs))
        prover = Prover(subject, planned)
    except (TypeError, ValueError) as error:
        answer(unusable=str(error))
        return
    except Exception as error:
        answer(broke=_described(error))
        return
    answer(description=subject.description, lost=prover.lost)
    for line in lines:
        try:
            result = prover.run(PROBES[line.strip()])
        except Exception as error:
            answer(broke=_described(error))
        else:
            answer(result=asdict(result), lost=prover.lost)


def _call(subject: Subject, op: Callable[..., Any], inputs: Sequence[Any]) -> tuple[str, str]:
    reference = subject.reference
    of_reference = reference is not None and op is reference.function
    return "reference" if of_reference else "op", subject.described(inputs)


def end_with_parent(lifeline: int) -> None:
    """The kernel ends this process once the other end closes, even in C code that never returns."""
    signal.signal(signal.SIGIO, signal.SIG_DFL)
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)
    if select.select([lifeline], [], [], 0)[0]:
        sys.exit()  # it closed while torch was imported


def _described(error: Exception) -> str:
    frame = extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


if __name__ == "__main__":
    fd, lifeline, case, planned = sys.argv[1:]
    end_with_parent(int(lifeline))
    # Stacks go where no op prints; the parent takes them for the place of a crash or a hang.
    faulthandler.enable(int(fd))
    faulthandler.register(signal.SIGUSR1, int(fd))
    serve(socket.socket(fileno=int(fd)), json.loads(case), json.loads(planned))
