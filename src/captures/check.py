"""Whether the tree may be published, judged without executing anything."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from captures.fault import Fault, Faults
from captures.fingerprint import tree_fingerprint
from captures.forms import read_pages
from captures.library import library
from captures.outdated import Outdated, summary
from captures.project import Project, read_text
from captures.prose import check_prose
from captures.resolve import Resolver, check_pages
from captures.script import Cell, Script, script_names
from captures.shown import Shown
from captures.transcript import MACHINES, Transcript, transcript_path

GPU_REPORT = "tests/kernels/gpu_report.txt"  # in the project


@dataclass(frozen=True)
class Verdict:
    """``errors`` forbid publishing; ``warnings`` are of what only a GPU can mend, a line a kind.

    ``remedy`` refreshes several CPU transcripts at once; their errors then name none of their own.
    """

    errors: tuple[Fault, ...]
    warnings: tuple[str, ...]
    remedy: str = ""


def check(project: Project, release: bool = False) -> Verdict:
    """Judge scripts, transcripts and pages; under ``release`` nothing of the GPU may be stale."""
    return _Check(project, release, Resolver(project)).judge()


def refusals(project: Project, names: Iterable[str]) -> list[Fault]:
    """What ``check`` will say of these scripts' own code, whatever pages show; sorted."""
    shelves = library(project)
    faults: set[Fault] = set()
    for name in names:
        try:
            script = shelves.script(name)
            faults |= {*shelves.dishonesty(script), *shelves.why_not_inline(script)}
        except Faults as found:
            faults |= set(found.faults)
    shelves.memory.save(forget=False)
    return sorted(faults)


@dataclass
class _Check:
    project: Project
    release: bool
    resolver: Resolver
    errors: set[Fault] = field(default_factory=set)
    warnings: set[str] = field(default_factory=set)
    outdated: list[Outdated] = field(default_factory=list)
    forms: list[Shown] = field(default_factory=list)
    # None where a fault kept them from being read.
    transcripts: dict[str, list[Transcript] | None] = field(default_factory=dict)

    def judge(self) -> Verdict:
        self.forms, _ = read_pages(self.project)
        self.errors |= {*check_pages(self.resolver), *check_prose(self.project)}
        for name in script_names(self.project):
            self.transcripts[name] = None
            self._collect(partial(self._judge_example, name))
        self.errors |= set(_orphans(self.project, self.transcripts))
        self._collect(self._judge_gpu_report)
        remedy = self._weigh_outdated()
        self.resolver.library.memory.save()
        return Verdict(tuple(sorted(self.errors)), tuple(sorted(self.warnings)), remedy)

    def _collect(self, judge: Callable[[], None]) -> None:
        try:
            judge()
        except Faults as faults:
            self.errors |= set(faults.faults)

    def _judge_example(self, name: str) -> None:
        script = self.resolver.library.script(name)
        self.errors |= set(self.resolver.library.dishonesty(script))
        found = self.transcripts[name] = self.resolver.library.transcripts(script)
        self._judge_transcripts(script, found)
        self.errors |= set(_unused_cells(script, found, self.forms))

    def _judge_transcripts(self, script: Script, found: list[Transcript]) -> None:
        present = {transcript.machine: transcript for transcript in found}
        for machine in MACHINES:
            if machine not in present:
                if machine == "gpu" or not script.needs_gpu:
                    self.outdated.append(Outdated(script.name, machine, "missing"))
            elif machine == "cpu" and script.needs_gpu:
                where = self.project.relative(transcript_path(self.project, script.name, machine))
                message = f"should not exist: the script needs {script.needs}"
                self.errors.add(Fault(where, 0, message))
            elif not self.resolver.is_fresh(script, present[machine]):
                self.outdated.append(Outdated(script.name, machine, "stale"))

    def _weigh_outdated(self) -> str:
        """A fault for each, but one line for several that one command refreshes."""
        of = {machine: [o for o in self.outdated if o.machine == machine] for machine in MACHINES}
        if self.release:
            self.errors |= {o.fault(self.project, self.forms) for o in of["gpu"]}
        elif of["gpu"]:
            self.warnings.add(summary(of["gpu"], self.project, self.forms))
        several = len(of["cpu"]) > 1
        self.errors |= {o.fault(self.project, self.forms, remedy=not several) for o in of["cpu"]}
        return summary(of["cpu"], self.project, self.forms) if several else ""

    def _judge_gpu_report(self) -> None:
        """The GPU tests leave a report that names the code they ran on and how many failed."""
        report = self.project.root / GPU_REPORT
        tests = report.parent
        if not tests.is_dir():
            return
        said = _reported(report, self.project) if report.is_file() else {}
        expected = tree_fingerprint(
            [self.project.src / "gradkernels", tests], self.resolver.library.memory
        )
        if not said:
            what = "is missing"
        elif said.get("fingerprint") != expected:
            what = "is stale, since kernels or their tests changed"
        elif said.get("failed", "0") != "0":
            what = f"says that {said['failed']} of the GPU tests failed; mend them"
        else:
            return
        fault = Fault(GPU_REPORT, 0, f"{what}; run `make test-gpu` on a GPU")
        if self.release:
            self.errors.add(fault)
        else:
            self.warnings.add(str(fault))


def _reported(report: Path, project: Project) -> dict[str, str]:
    """What the report says in its head, line by line as `name: value`."""
    head, _, _ = read_text(report, project.relative(report)).partition("\n\n")
    return dict(line.split(": ", 1) for line in head.split("\n") if ": " in line)


def _orphans(project: Project, transcripts: dict[str, list[Transcript] | None]) -> Iterator[Fault]:
    """Transcripts without a script and plots without a transcript."""
    for machine in MACHINES:
        for path in sorted(project.examples.glob(f"*/*.{machine}.txt")):
            example = path.relative_to(project.examples).as_posix().removesuffix(f".{machine}.txt")
            if example not in transcripts:
                yield Fault(
                    project.relative(path), 0, f"has no script {example}.py beside it; delete it"
                )
    named = {
        transcript_path(project, transcript.example, transcript.machine).with_name(figure)
        for found in transcripts.values()
        for transcript in found or ()
        for output in transcript.outputs
        for figure in output.figures
    }
    for path in sorted(project.examples.glob("*/*.svg")):
        example = f"{path.parent.name}/{path.name.partition('.')[0]}"
        if path not in named and transcripts.get(example, ()) is not None:
            yield Fault(project.relative(path), 0, "is a plot that no transcript names; delete it")


def _unused_cells(
    script: Script, transcripts: list[Transcript], forms: list[Shown]
) -> Iterator[Fault]:
    """Cells that say something no page asks for, and silent ones that nothing shown needs."""
    asked = {form.cell for form in forms if form.kind != "source" and form.target == script.name}
    where = script.project.relative(script.path)
    if not asked:
        yield Fault(where, 0, "no page shows this example")
        return
    needed = False
    for cell in reversed(script.cells):
        if cell.name in asked:
            needed = True
        elif _speaks(cell, transcripts):
            yield Fault(where, cell.line, f"cell `{cell.name}` says what no page shows")
        elif not needed:
            yield Fault(where, cell.line, f"cell `{cell.name}` serves no cell that a page shows")


def _speaks(cell: Cell, transcripts: list[Transcript]) -> bool:
    outputs = [transcript.output(cell.name) for transcript in transcripts]
    return any(output is not None and (output.text or output.figures) for output in outputs)
