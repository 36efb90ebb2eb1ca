"""What pages draw on, each thing read once until its file changes: a build asks for it often."""

from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from captures.fault import Fault, Faults
from captures.fingerprint import Sources, Stamp, flat, stamp_of
from captures.honesty import dishonest_prints, unguarded_errors
from captures.inline import why_not_inline
from captures.memory import Memory
from captures.project import Project
from captures.script import Script, read_script
from captures.transcript import MACHINES, Transcript, read_transcript, transcript_path

T = TypeVar("T")


@lru_cache(maxsize=64)
def library(project: Project) -> "Library":
    return Library(project)


class Library:
    """Scripts and transcripts of a project, and whether they still belong together."""

    def __init__(self, project: Project):
        self.project = project
        self.memory = Memory(project.cache / "memory.json")
        self._sources = Sources(project, self.memory)
        self._kept: dict[tuple[str, str], tuple[list[Path], list[Stamp], object]] = {}

    def script(self, name: str) -> Script:
        """Raises `Faults` where the script is malformed."""
        path = self.project.examples / f"{name}.py"
        return self._remember("script", name, [path], lambda: read_script(self.project, name))

    def transcripts(self, script: Script) -> list[Transcript]:
        """The transcripts there are, GPU first; raises `Faults` where one is damaged."""
        found = [self._transcript(script, machine) for machine in MACHINES]
        return [transcript for transcript in found if transcript is not None]

    def is_fresh(self, script: Script, transcript: Transcript) -> bool:
        """Whether the transcript is of the code as it is now."""
        return transcript.fingerprint == self.fingerprint(script)

    def fingerprint(self, script: Script) -> str:
        return self._sources.fingerprint(script)

    def why_not_inline(self, script: Script) -> list[Fault]:
        """What keeps an example from being one file; raises `Faults` of the modules it needs."""
        texts = flat(self.texts(script))
        return self.judge("inline", texts, lambda: why_not_inline(self.project, script))

    def dishonesty(self, script: Script) -> list[Fault]:
        """Prints of the script that no computation has earned."""
        return self.judge(
            "honesty",
            [script.name, script.text],
            lambda: [*unguarded_errors(script), *dishonest_prints(script)],
        )

    def texts(self, script: Script) -> dict[str, str]:
        """The texts, by name, of the script and of every module that it can load."""
        return self._sources.texts(script)

    def judge(
        self, kind: str, texts: Iterable[str], judge: Callable[[], Iterable[Fault]]
    ) -> list[Fault]:
        """What is wrong in texts, found out once for as long as they stay."""

        def work() -> list[tuple[str, int, str]]:
            return [(fault.path, fault.line, fault.message) for fault in judge()]

        return [Fault(*each) for each in self.memory.recall(kind, *texts, work=work)]

    def refresh(self) -> None:
        """Look whether modules have changed: one reading of the pages is of one state of them."""
        if not self._sources.hold():
            self._sources = Sources(self.project, self.memory)

    def _transcript(self, script: Script, machine: str) -> Transcript | None:
        path = transcript_path(self.project, script.name, machine)
        kept = self._kept.get((machine, script.name))
        # Its plots belong to it; which they are is known once it was read.
        outputs = kept[2].outputs if kept and isinstance(kept[2], Transcript) else ()
        figures = [path.with_name(name) for output in outputs for name in output.figures]
        return self._remember(
            machine,
            script.name,
            [path, *figures],
            lambda: read_transcript(self.project, script.name, machine),
        )

    def _remember(self, kind: str, name: str, paths: Iterable[Path], read: Callable[[], T]) -> T:
        paths = list(paths)
        stamp = [*map(stamp_of, paths)]
        kept = self._kept.get((kind, name))
        if kept is None or kept[:2] != (paths, stamp):
            try:
                result: T | Faults = read()
            except Faults as faults:
                result = faults
            kept = self._kept[kind, name] = (paths, stamp, result)
        if isinstance(kept[2], Faults):
            raise kept[2]
        return kept[2]  # type: ignore[return-value]
