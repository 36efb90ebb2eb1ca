"""The time figures that the project holds itself to, measured here and printed.

``python tests/benchmark.py``. No test fails on time, since a shared machine may be busy.
"""

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
BIN = Path(sys.executable).parent

FIGURES = [
    ("captures check on the whole tree", [BIN / "captures", "check"], 1.0),
    ("strict build with fresh captures", [BIN / "mkdocs", "build", "--strict"], 4.0),
]


def seconds(command: list) -> float:
    started = time.perf_counter()
    subprocess.run(command, cwd=ROOT, env=ENVIRONMENT, capture_output=True, check=False)
    return time.perf_counter() - started


ENVIRONMENT = os.environ | {"NO_MKDOCS_2_WARNING": "1"}

if __name__ == "__main__":
    for what, command, limit in FIGURES:
        seconds(command)  # after a change of the tree, the first has more to do
        figure = statistics.median(seconds(command) for _ in range(5))
        print(f"{what}: {figure:.2f} s (meant to stay under {limit:g} s)")
