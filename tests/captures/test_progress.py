import io

from rich.console import Console

from captures.fault import Fault
from captures.progress import Display, last_words
from captures.run import Outcome

FAILED = Outcome(
    "a/two",
    "failed",
    "raised ValueError: [bold]",
    0.3,
    faults=(Fault("examples/a/two.py", 7, "cell `x` raised ValueError: [bold]"),),
    cell="x",
    last_output="[red]the last",
)


def shown(sandbox, *outcomes: Outcome, moved=None, terminal: bool = False) -> str:
    text = io.StringIO()
    display = Display(Console(file=text, force_terminal=terminal, width=100, highlight=False))
    with display.live:
        for outcome in outcomes:
            display.started(outcome.example)
            display.finished(outcome)
    display.summary(sandbox.project, outcomes, said=last_words(outcomes, moved))
    return text.getvalue()


def test_each_example_is_named_as_it_starts_and_ends(sandbox) -> None:
    text = shown(sandbox, Outcome("a/one", "ran", "claims hold", 1.25))
    assert text.startswith("a/one: started\na/one: ran in 1.2 s, claims hold\n")
    assert "\x1b" not in text


def test_a_failure_has_its_page_and_last_output_and_what_is_short_comes_last(sandbox) -> None:
    sandbox.write("docs/p.md", "# P\n\n::: run a/two#x\n")
    text = shown(sandbox, FAILED, Outcome("a/one", "ran", "claims hold", 1.0))
    tail = text[text.index("examples/a/two.py:7:") :]
    assert tail == (
        "examples/a/two.py:7: cell `x` raised ValueError: [bold]\n"
        "    shown at docs/p.md:3\n"
        "    the last it said:\n"
        "        [red]the last\n"
        "\n2 examples: 1 ran, 1 failed.\n"
        "No claim differs from those recorded before.\n"
        "\n1 of 2 failed: a/two\n"
    )


MOVED = Outcome("a/one", "ran", "claims moved", 1.0, {"x": "a/one#x on cpu\n-sum: 1\n+sum: 2"})


def test_a_difference_is_printed_whole(sandbox) -> None:
    assert MOVED.difference in shown(sandbox, MOVED)


def test_what_ran_is_counted_at_the_end(sandbox) -> None:
    known, skipped = (Outcome(f"a/{status}", status) for status in ("known", "skipped"))
    ran = Outcome("a/one", "ran", "claims hold", 1.0)
    text = shown(sandbox, known, ran, skipped, moved={})
    assert text.endswith(
        "\n\n3 examples: 1 ran, 1 had run here already, 1 skipped.\n"
        "No claim differs from the committed ones.\n"
    )


def test_claims_that_changed_are_named_at_the_end_and_must_be_read(sandbox) -> None:
    known = Outcome("a/one", "known", "claims hold")
    text = shown(sandbox, known, moved={"a/one": ["x", "y"]})
    assert text.endswith(
        "\n\n1 example: 1 had run here already.\n"
        "Claims of 1 example differ from the committed ones:\n"
        "    a/one: x, y\n"
        "Read the difference in `git diff HEAD -- examples`, before you commit it: "
        "a changed claim is a finding, about the code or about the page that shows it.\n"
    )


def test_without_git_they_are_those_that_this_run_changed(sandbox) -> None:
    text = shown(sandbox, MOVED)
    assert "Claims of 1 example differ from those recorded before:\n    a/one: x\n" in text
    assert "Read the difference above, before" in text


def test_a_terminal_gets_colour_and_the_same_words(sandbox) -> None:
    text = shown(sandbox, Outcome("a/one", "ran", "claims hold", 1.0), terminal=True)
    assert "\x1b[" in text
    assert "a/one: ran in 1.0 s, claims hold" in text
