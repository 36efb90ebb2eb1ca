import subprocess
import sys

import pytest

from captures.fault import Faults
from captures.script import read_script
from captures.standalone import INTERPRETS, REFUSES, runnable, standalone

LAUNCH = '''
from collections.abc import Callable

WIDTHS = {"fp16": 16}
WIDTHS["fp32"] = 32

UNUSED = print("never")


def twice(x: "Callable") -> "Table":
    return 2 * x


class Table:
    """Holds."""
'''

GELU = '''
"""GELU."""

from __future__ import annotations

import math

from ._launch import WIDTHS, twice
from gk.registry import registered

# Elements a program takes.
BLOCK = 4
HALF = BLOCK // 2


@registered
def late():
    return math.pi


def gelu(x, BLOCK=1):
    """Four times x."""

    def inner(y):
        return twice(y)  # keeps its comment

    return inner(x) * HALF


def unused():
    return gelu(0)
'''

REGISTRY = """
NAMES = []


def registered(function):
    NAMES.append(function.__name__)
    return function
"""

SCRIPT = '''
"""What it shows."""

# %% setup
import sys
from math import (
    sqrt,
)

from gk.gelu import gelu, late
from gk.registry import NAMES

x = 3

# %% claim
print("four times:", gelu(x))

# %% second
print("root:", sqrt(x + 1), NAMES, late() > 3)
print("gk" in sys.modules)
'''


@pytest.fixture
def house(sandbox):
    sandbox.write("src/gk/__init__.py", "")
    sandbox.write("src/gk/_launch.py", LAUNCH)
    sandbox.write("src/gk/registry.py", REGISTRY)
    sandbox.write("src/gk/gelu.py", GELU)
    sandbox.example("a/one", SCRIPT)
    return sandbox


def alone(house, script: str = SCRIPT, cell: str = "") -> str:
    house.example("a/one", script)
    read = read_script(house.project, "a/one")
    return runnable(house.project, read, cell) if cell else standalone(house.project, read)


def refusals(house, script: str) -> list[str]:
    with pytest.raises(Faults) as raised:
        alone(house, "# %% setup\n" + script)
    return [str(fault) for fault in raised.value.faults]


def run(text: str, directory) -> str:
    (directory / "alone.py").write_text(text)
    command = [sys.executable, "-I", "alone.py"]
    done = subprocess.run(command, cwd=directory, capture_output=True, text=True, check=True)
    return done.stdout


def test_it_runs_alone(house, tmp_path_factory) -> None:
    said = run(alone(house), tmp_path_factory.mktemp("empty"))
    assert said == "four times: 12\nroot: 2.0 ['late'] True\nFalse\n"


def test_only_what_is_needed_is_written_out(house) -> None:
    text = alone(house, cell="claim")
    assert "WIDTHS" not in text and "unused" not in text and "never" not in text
    assert "sqrt" not in text and "import sys" not in text
    assert "# %% second" not in text
    assert "# keeps its comment" in text
    assert "# Elements a program takes.\nBLOCK = 4\nHALF" in text


def test_a_parameter_does_not_pull_in_the_module_name_it_hides(house) -> None:
    house.write("src/gk/gelu.py", "BLOCK = 4\n\n\ndef gelu(x, BLOCK):\n    return x * BLOCK\n")
    assert "BLOCK = 4" not in alone(house, "# %% a\nfrom gk.gelu import gelu\ngelu(1, 2)\n")


def test_definitions_stand_before_what_uses_them(house) -> None:
    text = alone(house)
    order = ["def twice", "def registered", "HALF =", "@registered\ndef late", "def gelu", "x = 3"]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)


def test_what_changes_a_definition_comes_with_it(house) -> None:
    text = alone(house, "# %% a\nfrom gk._launch import WIDTHS\nprint(WIDTHS)\n")
    assert 'WIDTHS["fp32"] = 32' in text


def test_the_header_says_how_to_run_it(house) -> None:
    whole = alone(house)
    assert whole.startswith('# From "Backward in Triton": the example a/one.\n')
    assert "python one.py\n" in whole
    part = alone(house, cell="claim")
    assert '# up to its cell "claim".' in part and "python claim.py\n" in part
    triton = "# %% setup\nimport torch\nimport triton\nprint(torch, triton)\n"
    text = alone(house, triton)
    assert "# It needs torch and triton.\n" in text
    assert "# Run it, on a CUDA GPU or else in Triton's interpreter, which needs numpy:\n" in text
    assert "CUDA GPU:\n" in alone(house, f"# needs: gpu\n\n{triton}")


TRITON = (
    "# %% a\nfrom math import pi\n\nimport triton\nfrom torch import nn\n\nprint(pi, nn, triton)\n"
)


def test_what_it_does_without_a_gpu_stands_before_triton_can_be_imported(house) -> None:
    text = alone(house, TRITON)
    order = [
        "from math",
        "\nimport torch\n",
        INTERPRETS.code,
        "import triton",
        "from torch import nn",
    ]
    positions = [text.index(part) for part in order]
    assert positions == sorted(positions)
    assert text.count("import os\n") == text.count("import torch\n") == 1
    assert "TRITON_INTERPRET" not in alone(house, f"# needs: gpu\n{TRITON}")
    assert REFUSES.code in alone(house, f"# needs: gpu\n{TRITON}")
    assert "cuda" not in alone(house, "# %% a\nimport torch\n\nprint(torch)\n")


def test_the_result_is_formatted_and_clean(house, tmp_path) -> None:
    written = {"whole": alone(house), "part": alone(house, cell="claim")}
    written |= {"guarded": alone(house, TRITON), "gpu": alone(house, f"# needs: gpu\n{TRITON}")}
    for name, text in written.items():
        path = tmp_path / f"{name}.py"
        path.write_text(text)
        for command in (["check", "--isolated", "--select=E,F,I"], ["format", "--check"]):
            options = ["--line-length=100", "--no-cache", path]
            done = subprocess.run(
                [sys.executable, "-m", "ruff", *command, *options], capture_output=True, text=True
            )
            assert done.returncode == 0, done.stdout + text


def test_imports_are_merged_once(house) -> None:
    house.write(
        "src/gk/gelu.py", "import torch.nn.functional as F\n\n\ndef gelu(x):\n    return F\n"
    )
    text = alone(
        house,
        "# %% a\nimport torch.nn.functional as F\nfrom gk.gelu import gelu\n\nprint(F, gelu)\n",
    )
    assert text.count("import torch.nn.functional as F") == 1


def test_plots_are_shown_at_the_end(house) -> None:
    text = alone(house, "# %% a\nimport matplotlib.pyplot as plt\n\nplt.plot([1])\n")
    assert text.endswith("plt.show()\n")


@pytest.mark.parametrize(
    ("script", "line", "said"),
    [
        ("import gk.gelu\n\ngk.gelu.gelu(1)", 2, "write `from gk.gelu import name`"),
        ("from gk.gelu import nothing\n\nnothing()", 2, "`gk.gelu` defines no `nothing`"),
        ("from gk import gelu\n\ngelu.nothing()", 2, "`gelu.nothing` is not defined in src/gk"),
        ("import requests\n\nrequests.get", 2, "imports requests; a reader has only"),
        ("def f():\n    from gk.gelu import gelu\n\n\nf()", 2, "move it to the top level"),
        ("from gk.gelu import gelu, late\n\nmath = late()", 4, "binds `math` anew"),
    ],
)
def test_what_one_file_cannot_say_is_refused(house, script, line, said) -> None:
    (fault,) = refusals(house, script)
    assert fault.startswith(f"examples/a/one.py:{line}: ")
    assert said in fault


def test_an_import_inside_a_module_s_function_is_named_where_it_stands(house) -> None:
    house.write(
        "src/gk/gelu.py", "def gelu(x):\n    from gk.registry import NAMES\n\n    return NAMES\n"
    )
    (fault,) = refusals(house, "from gk.gelu import gelu\n\ngelu(1)")
    assert fault.startswith("src/gk/gelu.py:2: `from gk.registry import NAMES` stands inside")


ONE = """
BLOCK = 4


def _half(x):
    return x / 2


def gelu(x, BLOCK=BLOCK):
    wide = [_half for _half in (x,)]
    return f"{_half(x)} of {BLOCK}", wide, Kind(_half=_half(4)).kind


class Kind:
    BLOCK = 2

    def __init__(self, _half):
        self.kind = (_half, self.BLOCK, BLOCK)
"""

TWO = """
from gk.one import gelu as first

BLOCK = 8


def _half(x):
    global COUNT
    COUNT = x
    return x // 2


COUNT = 0


def silu(x):
    def inner():
        BLOCK = _half(3)
        return BLOCK

    return f"{_half(x)!r:>3} of {BLOCK} " f"{inner()}", (lambda _half: _half)(x), first(x), COUNT
"""


@pytest.mark.parametrize(
    "cells",
    [
        "from gk.one import gelu\nfrom gk.two import silu\n\nprint(gelu(6), silu(6))\n",
        "from gk import one, two\n\nprint(one.gelu(6), two.silu(6))\n",
        "from gk import one, two\n\nprint([m.BLOCK for m in (one, two)], two.silu(6))\n",
        "from gk.two import silu as gelu\n\nBLOCK = 1\n_half = 2\nprint(gelu(6), BLOCK, _half)\n",
        "from gk.two import BLOCK, _half\nfrom gk.one import gelu\n\nprint(_half(9), gelu(BLOCK))",
        "from gk.two import silu\n\nCOUNT = 5\nprint(silu(6), COUNT)\n",
    ],
)
def test_what_is_called_alike_stays_apart(house, cells: str, tmp_path_factory) -> None:
    house.write("src/gk/one.py", ONE)
    house.write("src/gk/two.py", TWO)
    path = house.example("a/one", f"# %% setup\n{cells}")
    done = subprocess.run(
        [sys.executable, path],
        env={"PYTHONPATH": str(house.project.src)},
        capture_output=True,
        text=True,
        check=True,
    )
    text = standalone(house.project, read_script(house.project, "a/one"))
    assert run(text, tmp_path_factory.mktemp("empty")) == done.stdout


def test_reexports_are_followed(house) -> None:
    house.write("src/gk/__init__.py", "from gk.gelu import gelu\n")
    text = alone(house, "# %% a\nfrom gk import gelu\n\nprint(gelu(1))\n")
    assert "def gelu" in text


def test_a_module_that_does_not_parse_is_named(house) -> None:
    house.write("src/gk/gelu.py", "def gelu(:\n")
    (fault,) = refusals(house, "from gk.gelu import gelu\n\ngelu(1)")
    assert fault.startswith("src/gk/gelu.py:1: does not parse")
