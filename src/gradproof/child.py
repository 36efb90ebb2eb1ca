"""The process in which an isolated op runs: a probe's name comes in, its result goes out.

Requests are lines on stdin. Answers are lines of JSON on the file descriptor given, not on stdout,
which belongs to the op.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from typing import Any

from gradproof.load import UnusableError, load_case
from gradproof.probes import PROBES
from gradproof.prove import Prover
from gradproof.subject import Subject


def serve(arguments: list[str]) -> None:
    channel = os.fdopen(int(arguments[0]), "w")

    def answer(**message: Any) -> None:
        print(json.dumps(message), file=channel, flush=True)

    try:
        subject = Subject.of(load_case(*json.loads(arguments[1])))
        prover = Prover(subject)
    except (UnusableError, TypeError, ValueError) as error:
        answer(unusable=str(error))
        return
    answer(description=subject.description)
    for line in sys.stdin:
        result = prover.run(PROBES[line.strip()])
        answer(result=asdict(result))
        if prover.lost:
            return  # a CUDA context that met a memory fault serves nobody; the parent starts anew


if __name__ == "__main__":
    serve(sys.argv[1:])
