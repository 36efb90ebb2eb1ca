from dataclasses import replace

from captures.runs_page import runs_page
from captures.transcript import read_transcript, write_transcript

SCRIPT = "# %% claim\nprint('sum:', 0.5)\n"


def test_every_transcript_is_a_row(sandbox) -> None:
    sandbox.example("a/one", SCRIPT)
    sandbox.example("a/two", SCRIPT)
    sandbox.example("b_c/three", SCRIPT)
    sandbox.record("a/one", {"claim": "sum: 0.5"}, machine="gpu")
    sandbox.record("a/one", {"claim": "sum: 0.5"})
    sandbox.record("a/two", {"claim": "sum: 0.5"})
    sandbox.example("a/two", SCRIPT.replace("0.5", "0.25"))
    sandbox.write("docs/lessons/x.md", "::: run a/one#claim\n")
    lines = runs_page(sandbox.project).split("\n")
    assert "## B c { #b_c }" in lines
    gpu, cpu, one_gpu, one_cpu, two, three = rows(lines)
    assert gpu == "| GPU | a card | 2.13.0 | 3.7.1 | 3.11.0 |"
    assert cpu == "| CPU | a processor | 2.13.0 | 3.7.1 | 3.11.0 |"
    assert "[`one`](scripts/a/one.py){ #a-one }" in one_gpu
    assert "| [GPU](#machines) |" in one_gpu and "| [CPU](#machines) |" in one_cpu
    for fact in ("| 2026-11-29 { .unbroken } |", "| 1.5 s { .unbroken } |", "| fresh |"):
        assert fact in one_gpu and fact in one_cpu
    assert "[x](lessons/x.md#run-a-one-claim)" in one_gpu
    assert "**stale**{ .run-stale }" in two
    assert "not run" in three


def rows(lines: list[str]) -> list[str]:
    """The rows of all tables without their heads."""
    heads = ("| Example", "| Machine")
    return [
        line for line in lines if line.startswith("|") and not line.startswith((*heads, "| --"))
    ]


def test_machines_of_a_kind_are_told_apart(sandbox) -> None:
    for name in ("a/one", "a/two"):
        sandbox.example(name, SCRIPT)
        sandbox.record(name, {"claim": "sum: 0.5"})
    path = sandbox.project.examples / "a/two.cpu.txt"
    recorded = read_transcript(sandbox.project, "a/two", "cpu")
    newer = dict(recorded.provenance) | {"torch": "2.14.0"}
    path.unlink()
    write_transcript(sandbox.project, replace(recorded, provenance=newer))
    one, two, first, second = rows(runs_page(sandbox.project).split("\n"))
    assert one.startswith("| CPU 1 | a processor | 2.13.0")
    assert two.startswith("| CPU 2 | a processor | 2.14.0")
    assert "[CPU 1]" in first and "[CPU 2]" in second


def test_lessons_are_called_by_their_titles(sandbox) -> None:
    sandbox.example("rms_norm/one", SCRIPT)
    sandbox.record("rms_norm/one", {"claim": "sum: 0.5"})
    page = '---\ntitle: "RMSNorm: two grids"\n---\n\n::: run rms_norm/one#claim\n'
    sandbox.write("docs/lessons/rms-norm.md", page)
    said = runs_page(sandbox.project)
    assert "## RMSNorm: two grids { #rms_norm }" in said
    assert "[RMSNorm: two grids](lessons/rms-norm.md#run-rms_norm-one-claim)" in said


def test_sections_stand_in_the_order_of_the_menu(sandbox) -> None:
    sandbox.write("mkdocs.yml", "nav: [lessons/c-d.md, lessons/b.md]\n")
    sandbox.example("a/one", SCRIPT)
    for lesson in ("b", "c_d"):
        sandbox.example(f"{lesson}/one", SCRIPT)
        sandbox.write(f"docs/lessons/{lesson.replace('_', '-')}.md", "")
    headings = [line for line in runs_page(sandbox.project).split("\n") if line.startswith("## ")]
    assert [heading.split("#")[-1] for heading in headings[1:]] == ["c_d }", "b }", "a }"]
