"""The `gradproof` command."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from gradproof.isolation import PROBE_PATIENCE, prove_isolated
from gradproof.load import UnusableError
from gradproof.probes import PROBES
from gradproof.traps import TRAPS

EPILOGUE = """\
Probes run in a process of their own: a segmentation fault, an illegal address or a hang is one
finding in the report. Exit status: 0 all probes hold, 1 a trap was found, 2 the command is wrong.

example:
  gradproof mypackage.ops:gelu --inputs 'float32[6, 40]' --reference torch.nn.functional:gelu
"""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    if options.list:
        for probe in PROBES.values():
            print(f"{probe.name:<14}{probe.question}{' (on request)' * probe.on_request}")
        print()
        for trap in TRAPS.values():
            print(f"{trap.name:<28}{trap.title}")
        return 0
    if options.op is None:
        _parser().error("name an op, as package.module:callable")
    probes = None if options.probes is None else options.probes.split(",")
    try:
        report = prove_isolated(
            options.op, options.inputs, options.reference, probes, options.patience
        )
    except (UnusableError, ValueError) as error:
        print(f"gradproof: {error}", file=sys.stderr)
        return 2
    print(report)
    return 0 if report.ok else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
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
        "--patience", type=float, default=PROBE_PATIENCE, help="seconds for one probe (%(default)g)"
    )
    parser.add_argument("--list", action="store_true", help="list the probes and the traps")
    return parser


if __name__ == "__main__":
    sys.exit(main())
