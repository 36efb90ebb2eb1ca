"""What `captures run` shows on the terminal: each example as it starts and ends, then a table."""

import textwrap
import threading
from collections.abc import Sequence

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from captures.fault import Fault
from captures.forms import read_pages
from captures.places import shown_at
from captures.project import Project
from captures.run import Outcome, Watcher

_STYLES = {"ran": "green", "known": "dim", "skipped": "yellow", "failed": "red", "not run": "red"}


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
        self, project: Project, outcomes: Sequence[Outcome], refused: Sequence[Fault] = ()
    ) -> None:
        """The table, every difference, every failure with the pages that show it, and refusals.

        ``refused`` is what `captures check` will say of scripts that ran well.
        """
        self.console.print()
        self.table(outcomes)
        for outcome in outcomes:
            if outcome.difference:
                self.say(f"\n{outcome.difference}")
        forms, _ = read_pages(project)
        for outcome in outcomes:
            for fault in outcome.faults:
                self.say(f"\n{fault}", "red")
            if not outcome.ok:
                self.say(f"    shown at {shown_at(forms, outcome.example, outcome.cell)}")
            if outcome.last_output:
                self.say("    the last it said:")
                self.say(textwrap.indent(outcome.last_output, " " * 8))
        if refused:
            self.say("")
        for fault in refused:
            self.say(f"captures check will refuse: {fault}", "red")
        failed = [outcome.example for outcome in outcomes if not outcome.ok]
        if failed:
            self.say(f"\n{len(failed)} of {len(outcomes)} failed: {', '.join(failed)}", "red")
