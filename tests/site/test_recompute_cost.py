"""The widget and the example weigh alike: both are held to one table of cases."""

import ast
import json
import math
import runpy
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples" / "backward_grid"
COST = ROOT / "docs" / "assets" / "js" / "recompute-cost.js"
CASES = json.loads(Path(__file__).with_name("recompute_cases.json").read_text())
INPUTS = ("elements", "operations", "saved_bytes", "bandwidth", "rate")


def in_node(expression: str):
    """The value of a JavaScript expression over the module's exports, through JSON."""
    if shutil.which("node") is None:
        pytest.skip("needs node")
    program = f"import * as cost from {json.dumps(COST.as_uri())};"
    program += f"console.log(JSON.stringify({expression}));"
    ran = subprocess.run(
        ["node", "--input-type=module", "--eval", program],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.fixture(scope="module")
def example() -> dict:
    return runpy.run_path(str(EXAMPLES / "crossover.py"))


def python_answers(example: dict) -> list[dict]:
    return [
        {
            "save_seconds": example["save_seconds"](elements, saved_bytes, bandwidth),
            "recompute_seconds": example["recompute_seconds"](elements, operations, rate),
            "crossover": example["crossover"](saved_bytes, bandwidth, rate),
            "verdict": example["verdict"](elements, operations, saved_bytes, bandwidth, rate),
        }
        for elements, operations, saved_bytes, bandwidth, rate in (
            [case[name] for name in INPUTS] for case in CASES
        )
    ]


def javascript_answers() -> list[dict]:
    return in_node(
        f"{json.dumps(CASES)}.map((c) => ({{"
        "save_seconds: cost.saveSeconds(c.elements, c.saved_bytes, c.bandwidth),"
        "recompute_seconds: cost.recomputeSeconds(c.elements, c.operations, c.rate),"
        "crossover: cost.crossover(c.saved_bytes, c.bandwidth, c.rate),"
        "verdict: cost.verdict(c.elements, c.operations, c.saved_bytes, c.bandwidth, c.rate),"
        "}))"
    )


def hold_to_the_table(answers: list[dict]) -> None:
    assert len(answers) == len(CASES)
    for case, answer in zip(CASES, answers, strict=True):
        for name in ("save_seconds", "recompute_seconds", "crossover"):
            assert math.isclose(answer[name], case[name], rel_tol=1e-12), (case["case"], name)
        assert answer["verdict"] == case["verdict"], case["case"]


def test_the_example_gives_the_tables_answers(example):
    hold_to_the_table(python_answers(example))


def test_the_widget_gives_the_tables_answers():
    hold_to_the_table(javascript_answers())


def test_the_table_holds_every_verdict():
    assert {case["verdict"] for case in CASES} == {"save", "recompute", "equal"}


def test_both_know_the_same_machines(example):
    ours = {
        name: {"bandwidth": machine.bandwidth, "rates": machine.rates}
        for name, machine in example["MACHINES"].items()
    }
    assert in_node("cost.MACHINES") == ours


def sweep_functions() -> dict:
    """`measured_crossover` alone, out of an example that needs a GPU to run."""
    tree = ast.parse((EXAMPLES / "recompute_sweep.py").read_text())
    kept = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == "measured_crossover"
    ]
    names: dict = {"pairwise": pairwise}
    exec(compile(ast.Module(kept, []), "recompute_sweep.py", "exec"), names)
    return names


SWEEPS = {
    "between two points": ([(0, 3, 2), (10, 3, 2.5), (20, 3, 4)], 10 + 10 / 3),
    "on a point": ([(0, 3, 2), (10, 3, 3), (20, 3, 4)], 10),
    "never": ([(0, 3, 2), (10, 3, 2.5)], None),
}


@pytest.mark.parametrize("points, expected", SWEEPS.values(), ids=SWEEPS)
def test_both_read_a_measured_crossover_alike(points, expected):
    rows = [dict(zip(("operations", "save", "recompute"), point, strict=True)) for point in points]
    for answer in (
        sweep_functions()["measured_crossover"](points),
        in_node(f"cost.measuredCrossover({json.dumps(rows)})"),
    ):
        assert answer == (expected if expected is None else pytest.approx(expected))


def test_the_widget_reads_what_the_sweep_prints():
    printed = (
        "unit     operations   save ps  recompute ps\nfp32             32     3.412         2.903\n"
    )
    row = {"unit": "fp32", "operations": 32, "save": 3.412, "recompute": 2.903}
    assert in_node(f"cost.readPoints({json.dumps(printed)})") == [row]
