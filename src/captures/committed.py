"""Which claims are no longer those of the last commit, however often an example ran since."""

import subprocess
from collections.abc import Iterable, Mapping, Sequence

from captures.difference import differences
from captures.fault import Faults
from captures.project import Project
from captures.transcript import parse_transcript, read_transcript, transcript_path


def moved_since_commit(
    project: Project, examples: Iterable[str], machine: str
) -> dict[str, list[str]] | None:
    """The cells of each example whose recorded claims differ from the last commit's.

    An example without a committed transcript has none that moved. None where git cannot say,
    as in a download of the project that is no repository.
    """
    listed = _git(project, "diff", "--name-only", "--relative", "-z", "HEAD", "--", "examples")
    if listed is None:
        return None
    touched = set(listed.split("\0"))
    moved = {}
    for example in examples:
        path = project.relative(transcript_path(project, example, machine))
        cells = _moved_cells(project, example, machine, path) if path in touched else []
        if cells:
            moved[example] = cells
    return moved


def told(
    moved: Mapping[str, Sequence[str]],
    before: str = "the committed ones",
    place: str = "in `git diff HEAD -- examples`",
) -> str:
    """Which claims differ from those of ``before``, and that nobody may commit them unread."""
    if not moved:
        return f"No claim differs from {before}."
    noun = "example" if len(moved) == 1 else "examples"
    return "\n".join(
        [
            f"Claims of {len(moved)} {noun} differ from {before}:",
            *(f"    {example}: {', '.join(cells)}" for example, cells in moved.items()),
            f"Read the difference {place}, before you commit it: a changed claim is a finding, "
            "about the code or about the page that shows it.",
        ]
    )


def _moved_cells(project: Project, example: str, machine: str, path: str) -> list[str]:
    text = _git(project, "show", f"HEAD:./{path}")
    if text is None:
        return []  # it is new
    try:
        committed = parse_transcript(project, example, machine, text)
        recorded = read_transcript(project, example, machine)
    except Faults:
        return []  # `captures check` has more to say of it
    return list(differences(committed, recorded)) if recorded else []


def _git(project: Project, *arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=project.root, capture_output=True)
    except OSError:
        return None
    return done.stdout.decode(errors="replace") if done.returncode == 0 else None
