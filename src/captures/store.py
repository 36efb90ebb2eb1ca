"""What already ran on this machine with these versions, as transcripts in the cache."""

import re

from captures.fault import Faults
from captures.machine import Machine
from captures.project import Project
from captures.transcript import Transcript, read_transcript, transcript_path, write_transcript


class Store:
    """The runs on one machine; code that it has not run yet is none of them."""

    def __init__(self, project: Project, machine: Machine):
        words = (machine.kind, machine.device, machine.torch, machine.triton, machine.python)
        name = re.sub(r"[^\w.+]+", "-", " ".join(words))
        self.kind = machine.kind
        self.store = Project(project.cache / name)

    def recall(self, example: str, code: str) -> tuple[Transcript, dict[str, bytes]] | None:
        try:
            known = read_transcript(self.store, example, self.kind)
        except Faults:
            return None
        if known is None or known.fingerprint != code:
            return None
        directory = transcript_path(self.store, example, self.kind).parent
        names = [name for output in known.outputs for name in output.figures]
        return known, {name: (directory / name).read_bytes() for name in names}

    def keep(self, transcript: Transcript, figures: dict[str, bytes]) -> None:
        path = transcript_path(self.store, transcript.example, transcript.machine)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_transcript(self.store, transcript, figures)
