"""Run examples on this machine and bring their transcripts up to date."""

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime

from captures.difference import differences
from captures.execute import Failure, execute
from captures.fault import Fault, Faults
from captures.fingerprint import fingerprint
from captures.forked import ForkServer
from captures.machine import Machine
from captures.project import Project
from captures.script import Script, read_script
from captures.store import Store
from captures.transcript import (
    Transcript,
    read_transcript,
    transcript_path,
    write_transcript,
)


@dataclass(frozen=True)
class Outcome:
    """What became of one example.

    ``status`` is "ran", "known" (this code already ran on this machine), "skipped", "failed" or
    "not run"; ``note`` says why or what changed; ``differences`` holds a readable diff for each
    cell whose claims are not those of the former transcript; ``faults`` and ``last_output`` tell
    of a failure in ``cell``.
    """

    example: str
    status: str
    note: str = ""
    seconds: float = 0.0
    differences: Mapping[str, str] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    cell: str = ""
    last_output: str = ""

    @property
    def difference(self) -> str:
        return "\n".join(self.differences.values())

    @property
    def ok(self) -> bool:
        return self.status not in ("failed", "not run")


class Watcher:
    """Hears of every example as it starts and finishes; this one keeps silent."""

    def started(self, example: str) -> None: ...

    def finished(self, outcome: Outcome) -> None: ...

    def interrupted(self, everything: bool) -> None: ...


def run(
    project: Project,
    names: Sequence[str],
    machine: Machine,
    *,
    force: bool = False,
    check: bool = False,
    jobs: int = 1,
    watcher: Watcher | None = None,
) -> list[Outcome]:
    """Bring the transcripts of ``names`` for this ``machine`` up to date; outcomes in order.

    ``force`` executes what already ran here and rewrites what did not change. ``check`` executes
    everything, writes nothing, and fails where a claim differs. Up to ``jobs`` examples run at
    once; those with a measured cell follow one by one.
    """
    server = ForkServer(project, machine.kind)
    task = _Task(project, machine, force, check, watcher or Watcher(), server)
    alone = [name for name in names if _needs_machine_alone(project, name)]
    together = [name for name in names if name not in alone]
    with _interruptible(task), server:
        with ThreadPoolExecutor(jobs) as pool:
            outcomes = dict(zip(together, pool.map(task.run, together), strict=True))
        outcomes |= {name: task.run(name) for name in alone}
    return [outcomes[name] for name in names]


def _needs_machine_alone(project: Project, name: str) -> bool:
    """Examples that share a machine spoil each other's timings and fill a GPU's memory."""
    try:
        script = read_script(project, name)
    except Faults:
        return False
    return script.memory_needed > 0 or any(cell.measured for cell in script.cells)


@dataclass
class _Task:
    project: Project
    machine: Machine
    force: bool
    check: bool
    watcher: Watcher
    server: ForkServer
    stopped: bool = False
    running: dict[str, threading.Event] = field(default_factory=dict)

    def interrupt(self, everything: bool) -> None:
        self.stopped = self.stopped or everything
        for event in list(self.running.values()):
            event.set()

    def run(self, name: str) -> Outcome:
        outcome = self._outcome(name)
        self.watcher.finished(outcome)
        return outcome

    def _outcome(self, name: str) -> Outcome:
        if self.stopped:
            fault = Fault(f"examples/{name}.py", 0, "was not run: the run was ended before it")
            return Outcome(name, "not run", faults=(fault,))
        try:
            script = read_script(self.project, name)
            code = fingerprint(self.project, script)
        except Faults as faults:
            return Outcome(name, "failed", "cannot be read", faults=faults.faults)
        reason = reason_to_skip(script, self.machine)
        if reason:
            return Outcome(name, "skipped", reason)
        try:
            return self._settle(script, code)
        except OSError as error:
            fault = Fault(self.project.relative(script.path), 0, f"could not be recorded: {error}")
            return Outcome(name, "failed", "could not be recorded", faults=(fault,))

    def _settle(self, script: Script, code: str) -> Outcome:
        store = Store(self.project, self.machine)
        if not (self.force or self.check):
            known = store.recall(script.name, code)
            if known:
                note, moved = self._update(script, *known)
                return Outcome(script.name, "known", note, 0.0, moved)
        return self._execute(script, code, store)

    def _execute(self, script: Script, code: str, store: Store) -> Outcome:
        self.watcher.started(script.name)
        event = self.running[script.name] = threading.Event()
        try:
            execution = execute(script, self.machine, event, self.server)
        finally:
            del self.running[script.name]
        if execution.failure:
            return _failed(script, execution.failure, execution.duration)
        transcript = Transcript(
            script.name,
            self.machine.kind,
            self.machine.provenance
            | {
                "date": datetime.now(UTC).date().isoformat(),
                "duration": f"{execution.duration:.1f} s",
            },
            code,
            execution.outputs,
        )
        if self.check:
            return self._compare(script, transcript, execution.duration)
        store.keep(transcript, dict(execution.figures))
        note, moved = self._update(script, transcript, dict(execution.figures))
        return Outcome(script.name, "ran", note, execution.duration, moved)

    def _compare(self, script: Script, transcript: Transcript, seconds: float) -> Outcome:
        committed = self._committed(script.name)
        path = transcript_path(self.project, script.name, self.machine.kind)
        where = self.project.relative(path)
        if committed is None:
            fault = Fault(
                where, 0, f"is missing or damaged; run `captures run {script.name}` first"
            )
            return Outcome(script.name, "failed", "no transcript", seconds, faults=(fault,))
        moved = differences(committed, transcript)
        if moved:
            fault = Fault(where, 0, "this run says something else than the transcript (see above)")
            return Outcome(script.name, "failed", "claims differ", seconds, moved, (fault,))
        return Outcome(script.name, "ran", "claims hold", seconds)

    def _update(
        self, script: Script, fresh: Transcript, figures: dict[str, bytes]
    ) -> tuple[str, Mapping[str, str]]:
        """Rewrite the committed transcript if code or claims moved; say what was done and why."""
        committed = self._committed(script.name)
        if committed is None:
            write_transcript(self.project, fresh, figures)
            return "transcript is new", {}
        moved = differences(committed, fresh)
        if moved:
            note = "claims moved"
        elif committed.fingerprint != fresh.fingerprint:
            note = "code moved, claims hold"
        elif self.force:
            note = "rewritten, claims hold"
        else:
            return "claims hold", {}
        write_transcript(self.project, fresh, figures)
        _drop_figures(self.project, committed, keep=figures)
        return note, moved

    def _committed(self, name: str) -> Transcript | None:
        try:
            return read_transcript(self.project, name, self.machine.kind)
        except Faults:
            return None


def reason_to_skip(script: Script, machine: Machine) -> str:
    """Why this machine cannot run the script; "" where it can."""
    if script.needs_gpu and machine.kind != "gpu":
        return f"needs {script.needs}"
    if script.memory_needed > machine.memory and script.needs_gpu:
        return f"needs {script.needs}, this one has {machine.memory} GB"
    return ""


def _failed(script: Script, failure: Failure, seconds: float) -> Outcome:
    where = script.project.relative(script.path)
    fault = Fault(where, failure.line, f"cell `{failure.cell}` {failure.message}")
    return Outcome(
        script.name,
        "failed",
        failure.message,
        seconds,
        faults=(fault,),
        cell=failure.cell,
        last_output=failure.last_output,
    )


def _drop_figures(project: Project, former: Transcript, keep: dict[str, bytes]) -> None:
    directory = transcript_path(project, former.example, former.machine).parent
    for output in former.outputs:
        for name in set(output.figures) - set(keep):
            (directory / name).unlink(missing_ok=True)


@contextmanager
def _interruptible(task: _Task) -> Iterator[None]:
    """Ctrl-C kills what runs and goes on with the rest; a second one, or SIGTERM, ends it all."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    count = 0

    def stop(number: int, _frame: object) -> None:
        nonlocal count
        count += 1
        everything = count > 1 or number == signal.SIGTERM
        task.interrupt(everything)
        task.watcher.interrupted(everything)

    former: dict[int, Callable | int | None] = {
        number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)
