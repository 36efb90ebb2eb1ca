"""The `gradproof` command."""

from __future__ import annotations

import argparse
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NoReturn

from gradproof.isolation import PROBE_PATIENCE, ProbeBrokeError, Worker
from gradproof.load import UnusableError
from gradproof.probe import Probe
from gradproof.probes import PROBES
from gradproof.prove import choose, progress
from gradproof.report import ProbeResult, Report
from gradproof.traps import TRAPS

EPILOGUE = """\
Probes run in a child process, which is replaced if it dies: a segmentation fault, an illegal
address or a hang is one finding in the report. What the op prints comes last, on stderr.

exit status:
  0    all probes hold (those that can say anything; at least one)
  1    a trap was found, or no probe could say anything
  2    the command cannot be carried out as it stands; one line says why
  130  interrupted by Ctrl-C, after a report of what was known (143 by SIGTERM, 129 by SIGHUP)

example:
  gradproof mypackage.ops:gelu --inputs 'float32[6, 40]' --reference torch.nn.functional:gelu
"""

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.list:
        for probe in PROBES.values():
            print(f"{probe.name:<14}{probe.question}{' (on request)' * probe.on_request}")
        print()
        for trap in TRAPS.values():
            print(f"{trap.name:<28}{trap.title}")
        return 0
    if options.op is None:
        parser.error("name an op, as package.module:callable")
    names = None if options.probes is None else options.probes.replace(" ", "").split(",")
    try:
        probes = choose(names)
        planned = [probe.name for probe in probes]
        case = (options.op, options.inputs, options.reference)
        worker = Worker(*case, options.patience, planned)
    except ValueError as error:
        parser.error(str(error))
    return Run(worker, probes).status()


class Run:
    """The probes of one command, and how far they came."""

    def __init__(self, worker: Worker, probes: list[Probe]):
        self._worker = worker
        self._probes = probes
        self._began = time.monotonic()
        self._results: list[ProbeResult] = []
        self._broke = False

    def status(self) -> int:
        """Run the probes, print what came of them, and return the exit status."""
        try:
            with _stoppable(), self._worker:
                for probe in self._probes:
                    with progress(probe, self._worker.description):
                        self._results.append(self._result(probe.name))
        except UnusableError as error:
            self._print_what_the_op_printed()
            _complain(str(error))
            return 2
        except _StoppedError as stop:
            return self._stopped(stop.number)
        report = self._report()
        print(report, flush=True)
        self._print_what_the_op_printed()
        if self._broke:
            return 2
        return 0 if report.ok else 1

    def _result(self, probe: str) -> ProbeResult:
        try:
            return self._worker.run(probe)
        except ProbeBrokeError as error:
            self._broke = True
            return ProbeResult(probe, skipped=str(error))

    def _stopped(self, number: int) -> int:
        done, left = len(self._results), [p.name for p in self._probes[len(self._results) :]]
        during = f" during {left[0]}" if left else ""
        name = signal.Signals(number).name
        _complain(f"interrupted by {name}{during}; {done} of {len(self._probes)} probes had run")
        if self._results:
            self._results += [ProbeResult(name, skipped="interrupted") for name in left]
            print(self._report(), flush=True)
        self._print_what_the_op_printed()
        return 128 + number

    def _report(self) -> Report:
        seconds = time.monotonic() - self._began
        return Report(self._worker.description, tuple(self._results), seconds)

    def _print_what_the_op_printed(self) -> None:
        if said := self._worker.printed.take():
            print(f"gradproof: printed by the op or its imports:\n{said}", file=sys.stderr)


class _StoppedError(BaseException):
    def __init__(self, number: int):
        super().__init__(number)
        self.number = number


@contextmanager
def _stoppable() -> Iterator[None]:
    """A signal that ends the command raises instead, once; the next one ends it at once."""

    def stop(number: int, _: object) -> NoReturn:
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        raise _StoppedError(number)

    # One that is ignored stays so: nohup and the shell's background jobs count on it.
    before = {n: signal.getsignal(n) for n in SIGNALS if signal.getsignal(n) != signal.SIG_IGN}
    for number in before:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _complain(message: str) -> None:
    print(f"gradproof: {message}", file=sys.stderr, flush=True)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """One line; the usage is a --help away."""
        self.exit(2, f"gradproof: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="gradproof",
        description="Say whether a backward is right and, if not, which trap it fell into.",
        epilog=EPILOGUE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "op",
        nargs="?",
        help="package.module:callable or file.py:callable, or one that names a Case",
    )
    parser.add_argument(
        "--inputs",
        help="function that returns the tuple of inputs, or shapes: 'float32[4, 64], float32[64]'",
    )
    parser.add_argument("--reference", help="the same formula in torch, taking the same arguments")
    parser.add_argument("--probes", help="comma-separated; default: all but those on request")
    parser.add_argument(
        "--patience",
        type=float,
        default=PROBE_PATIENCE,
        help="seconds for the op's first call, and for one probe (%(default)g)",
    )
    parser.add_argument("--list", action="store_true", help="list the probes and the traps")
    return parser


if __name__ == "__main__":
    sys.exit(main())
