from captures.forms import read_pages
from captures.outdated import READ, Outdated, counted, summary


def test_a_fault_names_transcript_pages_and_command(sandbox) -> None:
    sandbox.write("docs/lessons/x.md", "# X\n\n::: run a/one#claim\n")
    forms, _ = read_pages(sandbox.project)
    stale = Outdated("a/one", "gpu", "stale")
    short = "examples/a/one.gpu.txt: is stale, since its code changed; shown at docs/lessons/x.md:3"
    assert str(stale.fault(sandbox.project, forms, remedy=False)) == short
    said = str(stale.fault(sandbox.project, forms))
    assert said == f"{short}; run `captures run a/one --machine gpu` and {READ}"
    missing = Outdated("a/one", "cpu", "missing").fault(sandbox.project, forms)
    assert str(missing).startswith("examples/a/one.cpu.txt: is missing; shown at ")
    assert str(missing).endswith(f"--machine cpu` and {READ}")


def test_several_are_counted_by_state() -> None:
    missing, stale = (Outdated("a/one", "gpu", state) for state in ("missing", "stale"))
    assert counted([stale, *[missing] * 57]) == "57 GPU transcripts are missing and 1 is stale"
    assert counted([missing, *[stale] * 2]) == "1 GPU transcript is missing and 2 are stale"
    assert counted([Outdated("a/one", "cpu", "stale")] * 20) == "20 CPU transcripts are stale"


def test_one_is_told_of_whole_and_several_in_one_line(sandbox) -> None:
    one, two = (Outdated(f"a/{name}", "cpu", "stale") for name in ("one", "two"))
    assert summary([one], sandbox.project, []) == str(one.fault(sandbox.project, []))
    said = summary([one, two], sandbox.project, [])
    assert said.startswith("2 CPU transcripts are stale: `captures run --machine cpu")
    assert said.endswith(READ)
    gpu = [Outdated("a/one", "gpu", "stale"), Outdated("a/two", "gpu", "missing")]
    assert "`make capture`" in summary(gpu, sandbox.project, [])
