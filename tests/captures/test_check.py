import subprocess
import sys
from dataclasses import replace

import pytest

from captures.check import GPU_REPORT, check
from captures.fingerprint import tree_fingerprint
from captures.run import run

SCRIPT = """
# %% setup
from gradkernels.gelu import gelu

# %% claim
print("twice:", gelu(2))
"""

PAGE = """
# A lesson

::: run a/one#claim
"""


@pytest.fixture
def house(sandbox):
    sandbox.write("src/gradkernels/__init__.py", "")
    sandbox.write("src/gradkernels/gelu.py", 'def gelu(x):\n    """Twice."""\n    return 2 * x\n')
    sandbox.example("a/one", SCRIPT)
    sandbox.write("docs/lessons/one.md", PAGE)
    capture(sandbox)
    return sandbox


def capture(house, **options) -> None:
    gpu = replace(house.cpu, kind="gpu", device="a card", memory=80)
    for machine in (house.cpu, gpu):
        for outcome in run(house.project, ["a/one"], machine, **options):
            assert outcome.ok, outcome


def errors(house, **options) -> list[str]:
    return [str(fault) for fault in check(house.project, **options).errors]


def warnings(house, **options) -> list[str]:
    return list(check(house.project, **options).warnings)


def edit(house, file: str, old: str, new: str) -> None:
    path = house.project.root / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_a_whole_tree_passes(house) -> None:
    assert check(house.project, release=True).errors == ()
    assert check(house.project).warnings == ()


def test_an_edited_kernel_names_every_example_and_page(house) -> None:
    edit(house, "src/gradkernels/gelu.py", "2 * x", "x + x")
    (stale,) = errors(house)
    assert stale.startswith("examples/a/one.cpu.txt: is stale")
    assert "docs/lessons/one.md:3" in stale
    assert "captures run a/one --machine cpu" in stale
    (warning,) = warnings(house)
    assert warning.startswith("examples/a/one.gpu.txt: is stale")
    assert len(errors(house, release=True)) == 2


def test_an_edited_comment_or_docstring_does_not(house) -> None:
    edit(house, "src/gradkernels/gelu.py", "Twice.", "Two times.")
    edit(house, "src/gradkernels/gelu.py", "return 2 * x", "return 2 * x  # exactly")
    assert check(house.project, release=True) == check(house.project)
    assert errors(house) == []


def test_a_module_that_does_not_parse_is_one_error(house) -> None:
    edit(house, "src/gradkernels/gelu.py", "return 2 * x", "return 2 *")
    assert len(errors(house)) == 1
    assert errors(house)[0].startswith("src/gradkernels/gelu.py:3: does not parse")
    (outcome,) = run(house.project, ["a/one"], house.cpu)
    assert str(outcome.faults[0]) == errors(house)[0]


def test_missing_transcripts_weigh_like_stale_ones(house) -> None:
    for machine in ("cpu", "gpu"):
        (house.project.examples / f"a/one.{machine}.txt").unlink()
    assert any(e.startswith("examples/a/one.cpu.txt: is missing") for e in errors(house))
    assert warnings(house)[0].startswith("examples/a/one.gpu.txt: is missing")


def test_a_gpu_example_needs_no_cpu_run(house) -> None:
    edit(house, "examples/a/one.py", "# %% setup", "# needs: gpu\n# %% setup")
    assert "should not exist: the script needs gpu" in errors(house)[0]
    (house.project.examples / "a/one.cpu.txt").unlink()
    assert errors(house, release=True) == []


def test_damage_is_told_of_with_its_line(house) -> None:
    edit(house, "examples/a/one.cpu.txt", "twice: 4", "twice: 5")
    house.write("examples/a/one.cpu.claim.svg", "<svg/>\n")
    assert errors(house)[0].startswith("examples/a/one.cpu.txt:12: was edited by hand")
    assert len(errors(house)) == 1, "whether a plot is in it cannot be known"


def test_what_nothing_uses_is_named(house) -> None:
    house.write("examples/a/gone.cpu.txt", "x\n")
    house.write("examples/a/stray.svg", "<svg/>\n")
    edit(house, "examples/a/one.py", "# %% claim", "# %% aside\nprint(abs(1))\n\n# %% claim")
    edit(house, "examples/a/one.py", "gelu(2))\n", "gelu(2))\n# %% after\ny = 1\n")
    capture(house)
    assert [error.split(";")[0] for error in errors(house)] == [
        "examples/a/gone.cpu.txt: has no script a/gone.py beside it",
        "examples/a/one.py:4: cell `aside` says what no page shows",
        "examples/a/one.py:9: cell `after` serves no cell that a page shows",
        "examples/a/stray.svg: is a plot that no transcript names",
    ]


def test_an_example_without_a_page_is_named(house) -> None:
    house.write("docs/lessons/one.md", "# A lesson\n")
    assert errors(house) == ["examples/a/one.py: no page shows this example"]


def test_malformed_scripts_and_dishonest_claims_are_errors(house) -> None:
    edit(house, "examples/a/one.py", 'print("twice:", gelu(2))', 'print("twice: 4")')
    assert any("prints the literal 'twice: 4'" in error for error in errors(house))
    house.example("a/two", "# %% Bad Name\n")
    assert any(error.startswith("examples/a/two.py:1: ") for error in errors(house))


def test_a_release_needs_a_fresh_report_of_the_gpu_tests(house) -> None:
    tests = house.write("tests/kernels/test_gelu.py", "def test(): pass\n").parent
    assert any("gpu_report.txt: is missing" in error for error in errors(house, release=True))
    current = tree_fingerprint([house.project.src / "gradkernels", tests])
    report = f"fingerprint: {current}\ndevice: a card\ntorch: 2.13.0\n{{}}passed: 3\n\nfailed: 9\n"
    house.write(GPU_REPORT, report.format(""))
    assert errors(house, release=True) == []
    house.write(GPU_REPORT, report.format("failed: 2\n"))
    assert any("2 of the GPU tests failed; mend" in error for error in errors(house, release=True))
    house.write(GPU_REPORT, report.format("failed: 0\n"))
    house.write("tests/kernels/test_gelu.py", "def test(): assert 1\n")
    assert any("gpu_report.txt: is stale" in error for error in errors(house, release=True))
    assert errors(house) == []


def test_torch_and_first_party_packages_stay_out(house) -> None:
    code = (
        "import sys; from captures.check import check; from captures.project import *;"
        f"check(Project(Path({str(house.project.root)!r})), True);"
        "print({'torch', 'triton', 'gradkernels', 'mkdocs', 'numpy'} & set(sys.modules))"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert said.stdout.strip() == "set()", said.stderr


def test_what_cannot_be_read_is_an_error_among_the_others(house) -> None:
    house.write("docs/lessons/two.md", "").write_bytes(b"# \xe9\n")
    house.write("src/gradkernels/gelu.py", "").write_bytes(b"# \xe9\n")
    house.example("a/folder.py/x", "")
    house.write(GPU_REPORT, "").write_bytes(b"\xe9\n")
    places = [error.partition(": ")[0] for error in errors(house)]
    assert {"docs/lessons/two.md", "examples/a/folder.py", "src/gradkernels/gelu.py"} <= {*places}


def test_code_that_nests_too_deeply_is_an_error(house) -> None:
    branches = "".join(f"elif x == {n}: x = {n}\n" for n in range(600))
    house.write("src/gradkernels/gelu.py", f"x = 1\nif x: gelu = abs\n{branches}")
    assert any("nests too deeply" in error for error in errors(house))
