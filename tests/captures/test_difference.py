from captures.difference import differences
from captures.transcript import Output, Transcript


def transcript(*outputs: Output) -> Transcript:
    return Transcript("a/one", "cpu", {}, "sha256:0", outputs)


def test_each_cell_that_claims_something_else_has_a_readable_diff() -> None:
    before = transcript(Output("same", False, "x: 1"), Output("sum", False, "a: 1\nsum: 1"))
    after = transcript(Output("same", False, "x: 1"), Output("sum", False, "a: 1\nsum: 2"))
    found = differences(before, after)
    assert list(found) == ["sum"]
    assert found["sum"].startswith("a/one#sum on cpu\n--- committed\n+++ this run\n")
    assert found["sum"].endswith(" a: 1\n-sum: 1\n+sum: 2")


def test_digits_that_were_measured_are_no_claim_and_a_plot_that_is_gone_is_one() -> None:
    before = transcript(Output("speed", True, "gbps: 41"), Output("plot", False, "", ("a.svg",)))
    assert (
        differences(before, transcript(Output("speed", True, "gbps: 7"), before.outputs[1])) == {}
    )
    assert "-figure a.svg" in differences(before, transcript(before.outputs[0]))["plot"]
