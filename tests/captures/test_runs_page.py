from captures.runs_page import runs_page

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
    rows = [line for line in lines if line.startswith("|") and "---" not in line]
    assert "## B c { #b_c }" in lines
    one_gpu, one_cpu, two, three = [row for row in rows if not row.startswith("| Example")]
    assert "[`one`](scripts/a/one.py){ #a-one }" in one_gpu
    assert "GPU: a card" in one_gpu and "CPU: a processor" in one_cpu
    for fact in ("2.13.0", "3.7.1", "3.11.0", "2026-11-29", "1.5 s", "| fresh |"):
        assert fact in one_gpu and fact in one_cpu
    assert "[x](lessons/x.md#run-a-one-claim)" in one_gpu
    assert "**stale**{ .run-stale }" in two
    assert "not run" in three


def test_lessons_are_called_by_their_titles(sandbox) -> None:
    sandbox.example("rms_norm/one", SCRIPT)
    sandbox.record("rms_norm/one", {"claim": "sum: 0.5"})
    page = '---\ntitle: "RMSNorm: two grids"\n---\n\n::: run rms_norm/one#claim\n'
    sandbox.write("docs/lessons/rms-norm.md", page)
    said = runs_page(sandbox.project)
    assert "## RMSNorm: two grids { #rms_norm }" in said
    assert "[RMSNorm: two grids](lessons/rms-norm.md#run-rms_norm-one-claim)" in said
