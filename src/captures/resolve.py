"""What each form of a page stands for: code, outputs, words and values of recorded runs.

Knows pages, scripts, transcripts and modules, and no site generator.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property

from captures.definitions import read_module
from captures.fault import Fault, Faults
from captures.forms import read_pages
from captures.library import library
from captures.modules import module_names, module_path
from captures.normalise import claims
from captures.project import Project
from captures.script import Cell, Script, script_names
from captures.shown import Shown
from captures.tokens import stands
from captures.transcript import Output, Transcript


@dataclass(frozen=True)
class View:
    """One output as a reader sees it, and the machines on which it came out so."""

    transcripts: tuple[Transcript, ...]
    output: Output
    stale: bool


@dataclass(frozen=True)
class Run:
    """A cell with its output: one view where the machines agree, else one each."""

    script: Script
    cell: Cell
    views: tuple[View, ...]
    words: str  # what its plots show


@dataclass(frozen=True)
class Source:
    """A definition of a module with the lines it stands on."""

    path: str
    first: int
    last: int
    code: str


@dataclass(frozen=True)
class Words:
    """Words of a page that a run printed, and the transcripts that hold them."""

    text: str
    transcripts: tuple[Transcript, ...]
    stale: bool


def check_pages(resolver: "Resolver") -> list[Fault]:
    """Everything in the pages and in what they offer that a strict build refuses, sorted."""
    project = resolver.project
    forms, faults = read_pages(project)
    for form in forms:
        try:
            resolver.resolve(form)
        except Faults as found:
            faults += found.faults
    for name in script_names(project):
        try:
            faults += resolver.library.why_not_inline(resolver.library.script(name))
        except Faults as found:
            faults += found.faults
    return sorted(set(faults))


class Resolver:
    """Resolves the forms of a project's pages; every method raises `Faults`.

    One serves for one reading of the pages: it reads an example once, and once whether it is fresh.
    """

    def __init__(self, project: Project):
        self.project = project
        self.library = library(project)
        self.library.refresh()
        self._fresh: dict[tuple[str, str], bool] = {}
        self._examples: dict[str, tuple[Script, list[Transcript]]] = {}

    def resolve(self, form: Shown) -> Run | Source | Words:
        resolvers: dict[str, Callable[[Shown], Run | Source | Words]] = {
            "run": self.run,
            "source": self.source,
            "quote": self.quote,
            "value": self.value,
        }
        return resolvers[form.kind](form)

    def run(self, form: Shown) -> Run:
        script, cell = self._cell(form)
        outputs = self._outputs(form, script)
        _require_words(form, outputs)
        if cell.measured or len(outputs) == 1 or _agree(outputs):
            views = [self._view(script, outputs[:1] if cell.measured else outputs)]
        else:
            views = [self._view(script, [output]) for output in outputs]
        return Run(script, cell, tuple(views), form.text)

    def source(self, form: Shown) -> Source:
        path = module_path(form.target, self.project)
        if path is None:
            message = f"there is no module {form.target} in src/ or examples/"
            raise _refusal(form, message, form.target, module_names(self.project))
        module = read_module(path, self.project.relative(path))
        lines = module.find(form.key)
        if lines is None:
            message = f"{form.target} defines no {form.key}"
            raise _refusal(form, message, form.key, module.symbols())
        first, last = lines
        code = textwrap.dedent("\n".join(module.text.split("\n")[first - 1 : last]))
        return Source(self.project.relative(path), first, last, code)

    def quote(self, form: Shown) -> Words:
        script, cell = self._cell(form)
        outputs = self._asked_for(form, self._outputs(form, script))
        holding = [pair for pair in outputs if stands(form.text, claims(pair[1]))]
        if len(holding) < len(outputs):
            raise _refusal(form, _misquoted(form, cell, outputs, holding))
        return self._words(script, form.text, holding)

    def value(self, form: Shown) -> Words:
        script, cell = self._cell(form)
        outputs = self._outputs(form, script)
        if cell.measured and not form.machine:
            outputs = outputs[:1]
        outputs = self._asked_for(form, outputs)
        found = [self._pulled(form, output) for _, output in outputs]
        if len(set(found)) > 1:
            said = ", ".join(
                f"{value} on {transcript.machine}"
                for (transcript, _), value in zip(outputs, found, strict=True)
            )
            raise _refusal(form, f"'{form.key}' is {said}; choose one with @gpu or @cpu")
        return self._words(script, found[0], outputs)

    def _cell(self, form: Shown) -> tuple[Script, Cell]:
        script, _ = self._example(form)
        cell = script.cell(form.cell)
        if cell is None:
            message = f"{self.project.relative(script.path)} has no cell '{form.cell}'"
            raise _refusal(form, message, form.cell, [cell.name for cell in script.cells])
        return script, cell

    def _example(self, form: Shown) -> tuple[Script, list[Transcript]]:
        name = form.target
        if name not in self._examples:
            if not (self.project.examples / f"{name}.py").is_file():
                message = f"there is no example {name}"
                raise _refusal(form, message, name, script_names(self.project))
            script = self.library.script(name)
            self._examples[name] = script, self.library.transcripts(script)
        return self._examples[name]

    def _outputs(self, form: Shown, script: Script) -> list[tuple[Transcript, Output]]:
        _, transcripts = self._example(form)
        outputs = [(transcript, transcript.output(form.cell)) for transcript in transcripts]
        found = [(transcript, output) for transcript, output in outputs if output is not None]
        if not found:
            what = f"cell '{form.cell}'" if transcripts else "it"
            raise _refusal(
                form,
                f"no transcript of {script.name} holds {what}; run `captures run {script.name}`",
            )
        return found

    def _asked_for(
        self, form: Shown, outputs: list[tuple[Transcript, Output]]
    ) -> list[tuple[Transcript, Output]]:
        asked = [pair for pair in outputs if form.machine in ("", pair[0].machine)]
        if not asked:
            raise _refusal(
                form,
                f"no {form.machine} transcript holds {form.target}#{form.cell}; "
                f"run `captures run {form.target} --machine {form.machine}`",
            )
        return asked

    def _pulled(self, form: Shown, output: Output) -> str:
        pairs = re.findall(r"^[ \t]*(\S.*?): +(\S.*?)[ \t]*$", output.text, re.MULTILINE)
        values = {value for key, value in pairs if key == form.key}
        where = f"{form.target}#{form.cell}"
        if not values:
            message = f"{where} prints no line '{form.key}: …'"
            raise _refusal(form, message, form.key, [key for key, _ in pairs])
        if len(values) > 1:
            raise _refusal(form, f"{where} prints '{form.key}: …' with several values")
        return values.pop()

    def _view(self, script: Script, outputs: Sequence[tuple[Transcript, Output]]) -> View:
        transcripts = tuple(transcript for transcript, _ in outputs)
        return View(transcripts, outputs[0][1], self._any_stale(script, transcripts))

    def _words(
        self, script: Script, text: str, outputs: Sequence[tuple[Transcript, Output]]
    ) -> Words:
        transcripts = tuple(transcript for transcript, _ in outputs)
        return Words(text, transcripts, self._any_stale(script, transcripts))

    def _any_stale(self, script: Script, transcripts: Iterable[Transcript]) -> bool:
        return not all(self.is_fresh(script, transcript) for transcript in transcripts)

    def is_fresh(self, script: Script, transcript: Transcript) -> bool:
        key = (script.name, transcript.machine)
        if key not in self._fresh:
            self._fresh[key] = self.library.is_fresh(script, transcript)
        return self._fresh[key]

    @cached_property
    def places(self) -> dict[tuple[str, str], list[str]]:
        """The pages that show each cell, in the order of their paths."""
        found: dict[tuple[str, str], list[str]] = {}
        for form in read_pages(self.project)[0]:
            if form.kind == "run":
                found.setdefault((form.target, form.cell), []).append(form.page)
        return found


def _require_words(form: Shown, outputs: Iterable[tuple[Transcript, Output]]) -> None:
    """Who cannot see a plot is told what it shows, by whoever puts it into a page."""
    plots = any(output.figures for _, output in outputs)
    where = f"{form.target}#{form.cell}"
    if plots and not form.text:
        raise _refusal(form, f'say what the plot shows: ::: run {where} "…"')
    if form.text and not plots:
        raise _refusal(form, f"{where} shows no plot, so its words go nowhere; take them out")


def _agree(outputs: Sequence[tuple[Transcript, Output]]) -> bool:
    return len({claims(output) for _, output in outputs}) == 1


def _misquoted(
    form: Shown,
    cell: Cell,
    outputs: Sequence[tuple[Transcript, Output]],
    holding: Sequence[tuple[Transcript, Output]],
) -> str:
    where = f"{form.target}#{form.cell}"
    lacking = [each for each in outputs if each not in holding]
    machines = " or ".join(transcript.machine for transcript, _ in lacking)
    lines = [line for _, output in lacking for line in claims(output).split("\n")]
    near = get_close_matches(form.text, lines, n=1, cutoff=0.4)
    hint = f"; it printed '{near[0].strip()}'" if near else ""
    if holding:
        held = ", ".join(transcript.machine for transcript, _ in holding)
        return (
            f"'{form.text}' stands in {where} on {held} only, and not on {machines}{hint}: mend "
            f"what is wrong there or, if the two do differ, write {where}@{held}"
        )
    if cell.measured and re.search(r"\d", form.text):
        return f"{where} is measured, so '{form.text}' may change; pull it: [](capture:{where}:key)"
    return f"'{form.text}' does not stand in what {where} printed on {machines}{hint}"


def _refusal(form: Shown, message: str, wanted: str = "", known: Iterable[str] = ()) -> Faults:
    near = get_close_matches(wanted, list(known), n=3, cutoff=0.5)
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return Faults([Fault(form.page, form.line, message + hint)])
