"""The texts that pages, notebooks and published scripts are made of: all stays while these do."""

from collections.abc import Iterable
from pathlib import Path

from captures.fault import Faults
from captures.forms import read_page
from captures.library import library
from captures.project import Project, read_text
from captures.resolve import Resolver
from captures.transcript import MACHINES, transcript_path


def of_pages(resolver: Resolver, pages: Iterable[Path]) -> dict[str, str]:
    """The texts of pages, and the code and records of all that they show; raises `Faults`.

    What is stale follows from these, since a record names the code that it was made of.
    """
    project = resolver.project
    texts: dict[str, str] = {}
    for path in pages:
        page = project.relative(path)
        texts[page] = read_text(path, page)
        forms, faults = read_page(project, path)
        if faults:
            raise Faults(faults)
        for form in forms:
            if form.kind == "source":
                name = resolver.source(form).path
                texts[name] = read_text(project.root / name, name)
            elif f"examples/{form.target}.py" not in texts:
                texts |= of_example(project, form.target)
            # Where a quote leads to.
            shown_at = resolver.places.get((form.target, form.cell))
            texts[f"places of {form.target}#{form.cell}"] = str(shown_at)
    return texts


def of_example(project: Project, name: str) -> dict[str, str]:
    """The texts of an example, of every module that it can load and of its transcripts."""
    script = library(project).script(name)
    records = [transcript_path(project, name, machine) for machine in MACHINES]
    texts = dict(library(project).texts(script))
    for path in filter(Path.is_file, records):
        texts[project.relative(path)] = read_text(path, project.relative(path))
    # Which is of its data files too.
    texts[f"fingerprint of {name}"] = library(project).fingerprint(script)
    return texts


def of_packages(project: Project) -> dict[str, str]:
    """The texts of all modules in src/."""
    names = {path: project.relative(path) for path in sorted(project.src.rglob("*.py"))}
    return {name: read_text(path, name) for path, name in names.items()}
