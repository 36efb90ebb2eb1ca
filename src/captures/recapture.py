"""Runs stale examples in the background while pages are being edited."""

import importlib.util
import logging
import os
import re
import subprocess
import sys
import threading
from collections.abc import Mapping

from captures.committed import moved_since_commit, told
from captures.project import Project
from captures.transcript import MACHINES

log = logging.getLogger("mkdocs.plugins.captures")


class Recapture:
    """One run of `captures run` at a time, and what to say of each example meanwhile.

    An example whose run failed is not tried again until its code changes. The end of a run is
    marked by writing into `signals`, which the server watches, so that the pages are built anew
    even where no transcript changed.
    """

    def __init__(self, project: Project):
        self.project = project
        self.notes: dict[str, str] = {}
        self.signals = project.cache / "serve"
        self.signals.mkdir(parents=True, exist_ok=True)
        self._tried: dict[str, str] = {}
        self._thread: threading.Thread | None = None

    def start(self, stale: Mapping[str, str]) -> None:
        """Run the examples of `stale`, which maps names to fingerprints, that were not tried."""
        if importlib.util.find_spec("torch") is None:
            for name in stale:
                self.notes[name] = "the code has changed since, and torch is not installed here"
            return
        if self._thread is not None and self._thread.is_alive():
            return
        names = [name for name, code in stale.items() if self._tried.get(name) != code]
        if not names:
            return
        for name in names:
            self._tried[name] = stale[name]
            self.notes[name] = "the code has changed since, and is being run again"
        self._thread = threading.Thread(target=self._run, args=(names,), daemon=True)
        self._thread.start()

    def _run(self, names: list[str]) -> None:
        for name in names:
            finished = subprocess.run(
                [sys.executable, "-m", "captures", "run", name],
                cwd=self.project.root,
                # Compiled files beside the sources would be seen as further edits.
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                capture_output=True,
                text=True,
            )
            self.notes[name] = "the code has changed since, and this machine cannot run it"
            if finished.returncode:
                said = _complaint(finished.stderr or finished.stdout)
                self.notes[name] = f"the code has changed since, and running it ended with: {said}"
            self._tell_of_claims(name)
            (self.signals / "finished").write_text(f"{name}\n{finished.stdout}{finished.stderr}")

    def _tell_of_claims(self, name: str) -> None:
        """What is recorded in passing is committed in passing, unless somebody says so."""
        for machine in MACHINES:
            moved = moved_since_commit(self.project, [name], machine)
            if moved:
                log.info("%s", told(moved))


def _complaint(said: str) -> str:
    """The first line that names a place, else the last one."""
    place = re.search(r"^(?:captures check will refuse: )?(\S+:\d+: .*)", said, re.MULTILINE)
    return place[1] if place else said.strip().split("\n")[-1]
