"""What `captures run` shows on the terminal: each example as it starts and ends, then a table,
and at the end what nobody should miss: changed claims and failures."""

import textwrap
import threading
from collections import Counter
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from captures.committed import told
from captures.fault import Fault
from captures.forms import read_pages
from captures.places import shown_at
from captures.project import Project
from captures.run import Outcome, Watcher

_STYLES = {"ran": "green", "known": "dim", "skipped": "yellow", "failed": "red", "not run": "red"}
_COUNTED = {"known": "had run here already"}


class Display(Watcher):
    """Plain lines; on a terminal also a live line for each example that runs."""

    def __init__(self, console: Console):
        self.console = console
        self.lock = threading.Lock()
        self.tasks: dict[str, TaskID] = {}
        self.live = Progress(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def started(self, example: str) -> None:
        with self.lock:
            if self.console.is_terminal:
                self.tasks[example] = self.live.add_task(example, total=None)
            else:
                self.say(f"{example}: started")

    def finished(self, outcome: Outcome) -> None:
        with self.lock:
            if outcome.example in self.tasks:
                self.live.remove_task(self.tasks.pop(outcome.example))
            seconds = f" in {outcome.seconds:.1f} s" if outcome.seconds else ""
            note = f", {outcome.note}" if outcome.note else ""
            self.say(f"{outcome.example}: {outcome.status}{seconds}{note}", _STYLES[outcome.status])

    def interrupted(self, everything: bool) -> None:
        rest = "ending" if everything else "going on with the rest; Ctrl-C again ends everything"
        self.say(f"interrupted: {rest}", "red")

    def say(self, text: str, style: str = "") -> None:
        self.console.print(Text(text, style), soft_wrap=True)

    def table(self, outcomes: Sequence[Outcome]) -> None:
        table = Table(box=None, pad_edge=False, header_style="bold")
        for column in ("example", "result", "seconds", "note"):
            table.add_column(column, justify="right" if column == "seconds" else "left")
        for outcome in outcomes:
            table.add_row(
                Text(outcome.example),
                Text(outcome.status, _STYLES[outcome.status]),
                f"{outcome.seconds:.1f}" if outcome.seconds else "",
                Text(outcome.note),
            )
        self.console.print(table)

    def summary(
        self,
        project: Project,
        outcomes: Sequence[Outcome],
        refused: Sequence[Fault] = (),
        said: str = "",
    ) -> None:
        """The table, every difference, every failure with its pages, refusals, and the last words.

        ``refused`` is what `captures check` will say of scripts that ran well, ``said`` what
        ``last_words`` made of the outcomes.
        """
        self.console.print()
        self.table(outcomes)
        for outcome in outcomes:
            if outcome.differences:
                self.say(f"\n{outcome.difference}")
        self._failures(project, outcomes)
        if refused:
            self.say("")
        for fault in refused:
            self.say(f"captures check will refuse: {fault}", "red")
        ran, _, moved = said.partition("\n")
        self.say(f"\n{ran}")
        self.say(moved, "bold yellow" if "\n" in moved else "green")
        failed = [outcome.example for outcome in outcomes if not outcome.ok]
        if failed:
            self.say(f"\n{len(failed)} of {len(outcomes)} failed: {', '.join(failed)}", "red")

    def _failures(self, project: Project, outcomes: Sequence[Outcome]) -> None:
        forms, _ = read_pages(project)
        for outcome in outcomes:
            for fault in outcome.faults:
                self.say(f"\n{fault}", "red")
            if not outcome.ok:
                self.say(f"    shown at {shown_at(forms, outcome.example, outcome.cell)}")
            if outcome.last_output:
                self.say("    the last it said:")
                self.say(textwrap.indent(outcome.last_output, " " * 8))


def last_words(
    outcomes: Sequence[Outcome], moved: Mapping[str, Sequence[str]] | None = None
) -> str:
    """How many examples ran, and which claim something new.

    ``moved`` names the cells of each example that claim something else than was committed; where
    that is not known, those count whose former transcript claimed something else.
    """
    if moved is not None:
        return f"{counted(outcomes)}\n{told(moved)}"
    changed = {each.example: [*each.differences] for each in outcomes if each.differences}
    return f"{counted(outcomes)}\n{told(changed, 'those recorded before', 'above')}"


def counted(outcomes: Sequence[Outcome]) -> str:
    """How many there are of each kind: `73 examples: 70 ran, 2 had run here already, 1 skipped.`"""
    counts = Counter(outcome.status for outcome in outcomes)
    said = [f"{counts[s]} {_COUNTED.get(s, s)}" for s in _STYLES if counts[s]]
    noun = "example" if len(outcomes) == 1 else "examples"
    return f"{len(outcomes)} {noun}: {', '.join(said)}."
