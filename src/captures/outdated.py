"""Transcripts that are missing or of other code: what is said of them and what refreshes them."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from captures.fault import Fault
from captures.places import shown_at
from captures.project import Project
from captures.shown import Shown
from captures.transcript import transcript_path

# A broken kernel's output is recorded as willingly as a mended one's: only a reader can tell.
READ = "read what changed in `git diff` before you commit it: a changed claim is a finding"

_SAID = {"missing": "is missing", "stale": "is stale, since its code changed"}

_REFRESHED = {
    "gpu": (
        "a maintainer refreshes them with `make capture`; `captures check --release` lists them"
    ),
    "cpu": f"`captures run --machine cpu -j 2` refreshes them; {READ}",
}


@dataclass(frozen=True)
class Outdated:
    """The transcript of an example on a kind of machine, which is "missing" or "stale"."""

    example: str
    machine: str
    state: str

    def fault(self, project: Project, forms: list[Shown], *, remedy: bool = True) -> Fault:
        """One line with the pages that show it and, unless it is said elsewhere, what to run."""
        where = project.relative(transcript_path(project, self.example, self.machine))
        said = f"{_SAID[self.state]}; shown at {shown_at(forms, self.example)}"
        if remedy:
            command = f"captures run {self.example} --machine {self.machine}"
            said += f"; run `{command}` and {READ}"
        return Fault(where, 0, said)


def summary(several: Sequence[Outdated], project: Project, forms: list[Shown]) -> str:
    """One line for all that are outdated on one machine, with what refreshes them."""
    if len(several) == 1:
        return str(several[0].fault(project, forms))
    return f"{counted(several)}: {_REFRESHED[several[0].machine]}"


def counted(several: Sequence[Outdated]) -> str:
    """How many there are on one machine: `57 GPU transcripts are missing and 1 is stale`."""
    counts = Counter(each.state for each in several)
    parts = [
        f"{counts[state]} {'is' if counts[state] == 1 else 'are'} {state}"
        for state in _SAID
        if counts[state]
    ]
    number, _, rest = parts[0].partition(" ")
    noun = f"{several[0].machine.upper()} transcript{'s' * (number != '1')}"
    return " and ".join([f"{number} {noun} {rest}", *parts[1:]])
