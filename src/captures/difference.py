"""Where two runs of an example claim different things."""

import difflib

from captures.normalise import claims
from captures.transcript import Output, Transcript


def differences(before: Transcript, after: Transcript) -> dict[str, str]:
    """A readable diff for each cell whose claims are not the same; what was measured may move."""
    cells = dict.fromkeys(output.cell for output in (*after.outputs, *before.outputs))
    found = {}
    for cell in cells:
        old, new = (_lines(transcript.output(cell)) for transcript in (before, after))
        if old != new:
            diff = difflib.unified_diff(old, new, "committed", "this run", lineterm="", n=2)
            title = f"{after.example}#{cell} on {after.machine}"
            found[cell] = "\n".join([title, *diff])
    return found


def _lines(output: Output | None) -> list[str]:
    if output is None:
        return ["(no such cell)"]
    return [*claims(output).split("\n"), *(f"figure {name}" for name in output.figures)]
