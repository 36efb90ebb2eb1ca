import io

from rich.console import Console

from captures.fault import Fault
from captures.progress import Display
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


def shown(sandbox, *outcomes: Outcome, terminal: bool = False) -> str:
    text = io.StringIO()
    display = Display(Console(file=text, force_terminal=terminal, width=100, highlight=False))
    with display.live:
        for outcome in outcomes:
            display.started(outcome.example)
            display.finished(outcome)
    display.summary(sandbox.project, outcomes)
    return text.getvalue()


def test_each_example_is_named_as_it_starts_and_ends(sandbox) -> None:
    text = shown(sandbox, Outcome("a/one", "ran", "claims hold", 1.25))
    assert text.startswith("a/one: started\na/one: ran in 1.2 s, claims hold\n")
    assert "\x1b" not in text


def test_a_failure_stands_at_the_end_with_its_page_and_last_output(sandbox) -> None:
    sandbox.write("docs/p.md", "# P\n\n::: run a/two#x\n")
    text = shown(sandbox, FAILED, Outcome("a/one", "ran", "claims hold", 1.0))
    tail = text[text.index("examples/a/two.py:7:") :]
    assert tail == (
        "examples/a/two.py:7: cell `x` raised ValueError: [bold]\n"
        "    shown at docs/p.md:3\n"
        "    the last it said:\n"
        "        [red]the last\n"
        "\n1 of 2 failed: a/two\n"
    )


def test_a_difference_is_printed_whole(sandbox) -> None:
    difference = "a/one#x on cpu\n-sum: 1\n+sum: 2"
    assert difference in shown(sandbox, Outcome("a/one", "ran", "claims moved", 1.0, difference))


def test_a_terminal_gets_colour_and_the_same_words(sandbox) -> None:
    text = shown(sandbox, Outcome("a/one", "ran", "claims hold", 1.0), terminal=True)
    assert "\x1b[" in text
    assert "a/one: ran in 1.0 s, claims hold" in text
