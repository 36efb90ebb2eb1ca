import base64
import json
import re
import subprocess
import sys

import nbformat
import pytest

from captures.notebook import notebook
from captures.standalone import INTERPRETS

KERNEL = """
BLOCK = 4


def gelu(x):
    return x * BLOCK
"""

ONE = """
# %% setup
import math

from gk.gelu import gelu

x = 1

# %% first
print("first:", gelu(x))

# %% second
print("second:", gelu(x) + math.floor(x))
"""

TWO = """
# %% setup
BLOCK = 7
x = 100

# %% claim
print("two:", BLOCK)
"""

PAGE = """
---
title: One
---

# One { #one }

See [other](other.md#there), [top](../index.md), [here](#one) and [out](https://host/x.md).

=== "Tab"

    ::: run a/one#first

Between, [7](capture:a/two#claim).

> quoted

::: run a/two#claim

!!! note "Inside"

    before

    ::: run a/one#second

    after

::: run a/one#first

::: source gk.gelu:gelu
"""

SVG = '<svg width="72pt" height="36pt">é</svg>\n'

SAID = {"first": "first: 4", "second": "second: 5", "claim": "two: 7", "setup": ""}


@pytest.fixture
def house(sandbox):
    sandbox.write("src/gk/__init__.py", "")
    sandbox.write("src/gk/gelu.py", KERNEL)
    sandbox.example("a/one", ONE)
    sandbox.example("a/two", TWO)
    for name in ("a/one", "a/two"):
        sandbox.record(name, SAID)
    sandbox.write("docs/lessons/one.md", PAGE)
    return sandbox


def book(house, **options):
    return notebook(house.project, house.project.docs / "lessons/one.md", **options)


def cells(house, kind: str, **options) -> list[str]:
    read = nbformat.reads(book(house, **options), as_version=4)
    return [cell.source for cell in read.cells if cell.cell_type == kind]


def test_it_is_valid_and_its_bytes_stay(house) -> None:
    text = book(house)
    read = nbformat.reads(text, as_version=4)
    nbformat.validate(read)
    assert text == book(house)
    ids = [cell.id for cell in read.cells]
    assert len(set(ids)) == len(ids)


def test_outputs_are_those_of_the_gpu_where_there_is_one(house) -> None:
    house.record("a/two", {"setup": "", "claim": "two: 77"}, machine="gpu")
    house.write("docs/lessons/one.md", "# One\n\n::: run a/two#claim\n")
    read = nbformat.reads(book(house), as_version=4)
    outputs = [out.text for cell in read.cells for out in cell.get("outputs", [])]
    assert outputs == ["two: 77\n"]
    assert "recorded on **a card**" in read.cells[1].source


def test_a_package_and_its_part_are_imported_once(house) -> None:
    modules = {"a/one": "os", "a/two": "os.path", "a/three": "os"}
    for name, module in modules.items():
        house.example(name, f"# %% claim\nimport {module}\n\nprint(os.sep)\n")
        house.record(name, {"claim": "/"})
    runs = "\n\n".join(f"::: run {name}#claim" for name in modules)
    house.write("docs/lessons/one.md", f"# One\n\n{runs}\n")
    code = "\n".join(cells(house, "code"))
    assert re.findall("^import .*", code, re.MULTILINE) == ["import os", "import os.path"]


def test_it_says_once_what_happens_without_a_gpu(house) -> None:
    for name in ("a/one", "a/two"):
        house.example(
            name,
            (ONE if name == "a/one" else TWO).replace(
                "# %% setup", "# %% setup\nimport triton\n\nprint(triton)"
            ),
        )
        house.record(name, SAID)
    code = "\n".join(cells(house, "code"))
    assert code.count(INTERPRETS.code) == 1
    assert (
        code.index("import torch\n") < code.index(INTERPRETS.code) < code.index("import triton\n")
    )
    assert code.count("import os\n") == code.count("import torch\n") == 1


def test_executed_from_top_to_bottom_it_says_what_it_shows(house, tmp_path) -> None:
    read = nbformat.reads(book(house), as_version=4)
    code = [cell for cell in read.cells if cell.cell_type == "code"]
    script = tmp_path / "book.py"
    script.write_text("\n\n".join(cell.source for cell in code))
    command = [sys.executable, "-I", script]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "".join(out.text for cell in code for out in cell.outputs)
    # The second example rebinds x and BLOCK, so what they mean to the first is set up again.
    assert [cell.source for cell in code].count("x = 1") == 2
    assert done.stdout.count("second: 5") == 1


def test_future_imports_come_before_all_other_code(house) -> None:
    house.write(
        "src/gk/late.py", "from __future__ import annotations\n\n\ndef f(x: X):\n    return x\n"
    )
    house.example("a/two", "# %% claim\nfrom gk.late import f\n\nprint(f(7))\n")
    house.record("a/two", {"claim": "7"})
    code = cells(house, "code")
    assert code[0] == "from __future__ import annotations"
    compile("\n\n".join(code), "book.py", "exec")


def test_what_examples_share_is_written_out_once(house) -> None:
    # Each of the two definitions reads the other's; the second example binds a name of theirs.
    house.write(
        "src/gk/gelu.py",
        """
        def gelu(x):
            return x * scale()


        def scale(n=2):
            return n if n > 1 else gelu(n)
        """,
    )
    house.example("a/two", "# %% claim\nfrom gk.gelu import gelu\nscale = gelu(3)\nprint(scale)\n")
    runs = ("a/one#first", "a/two#claim", "a/one#second")
    for name in ("a/one", "a/two"):
        house.record(name, SAID)
    house.write("docs/lessons/one.md", "\n\n".join(f"::: run {run}" for run in runs))
    code = "\n".join(cells(house, "code"))
    assert code.count("def gelu(x):") == code.count("(n=2):") == 1


def test_an_example_starts_anew_where_another_moved_the_random_state(house) -> None:
    draw = "# %% setup\nimport random\n\nrandom.seed(0)\n\n# %% {}\nprint(random.random())\n"
    house.example("a/one", draw.format("first") + "\n# %% second\nprint(random.random())\n")
    house.example("a/two", draw.format("claim"))
    house.record("a/one", {"setup": "", "first": "0.8", "second": "0.7"})
    house.record("a/two", {"setup": "", "claim": "0.8"})
    runs = ("a/one#first", "a/two#claim", "a/one#second")
    house.write("docs/lessons/one.md", "\n\n".join(f"::: run {run}" for run in runs))
    assert cells(house, "code").count("random.seed(0)") == 3


def test_prose_keeps_its_order_and_needs_no_extension(house) -> None:
    prose = cells(house, "markdown")
    assert prose[0].startswith('# One<a id="one"></a>\n\nSee ')
    assert any(text.startswith("Between, 7.\n\n> quoted") for text in prose)
    assert "> **Inside**\n>\n> before" in prose
    assert any(text.startswith("> after") for text in prose)
    assert not any("capture:" in text or ":::" in text or "{ " in text for text in prose)


def test_links_lead_back_to_the_site(house) -> None:
    (first, *_) = cells(house, "markdown", site_url="https://site.org/b/")
    assert "(https://site.org/b/lessons/other/#there)" in first
    assert "(https://site.org/b/)" in first
    assert "(https://site.org/b/lessons/one/#one)" in first and "(https://host/x.md)" in first


def test_plots_are_in_the_notebook(house) -> None:
    house.write("examples/a/two.cpu.claim.svg", SVG)
    figures = {"claim": ["two.cpu.claim.svg"]}
    house.record("a/two", SAID, figures=figures)
    page = PAGE.replace("a/two#claim\n", 'a/two#claim "One < two."\n')
    house.write("docs/lessons/one.md", page)
    content = json.loads(book(house))
    data = [
        output["data"]
        for cell in content["cells"]
        for output in cell.get("outputs", [])
        if output["output_type"] == "display_data"
    ]
    ((image,),) = (each["text/html"] for each in data)
    assert re.match(
        r'<img alt="One &lt; two\." width="96" height="48" src="data:image/svg\+xml;base64,', image
    )
    assert base64.b64decode(image.split("base64,")[1][:-2]).decode() == SVG
