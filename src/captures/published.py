"""The files that a site offers and no one wrote, recalled while what they are made of stays."""

from pathlib import Path

from captures import ingredients
from captures.expand import expand, lesson_paths
from captures.fault import Faults
from captures.fingerprint import flat
from captures.library import library
from captures.memory import Shelf
from captures.notebook import notebook
from captures.resolve import Resolver
from captures.script import Script
from captures.standalone import runnable, standalone


class Published:
    """The texts of one build's files; every method raises `Faults`."""

    def __init__(self, resolver: Resolver, shelf: Shelf):
        self.project = resolver.project
        self.resolver = resolver
        self.shelf = shelf

    def scripts(self, name: str) -> dict[str, str]:
        """The example as it is, on its own, and up to each cell that a page shows, by address."""
        script = library(self.project).script(name)
        cells = [cell.name for cell in script.cells if (name, cell.name) in self.resolver.places]
        texts = [*cells, *flat(library(self.project).texts(script))]
        written = self.shelf.recall(f"scripts/{name}", texts, lambda: self._written(script, cells))
        return {f"scripts/{name}.py": script.text, **written}

    def _written(self, script: Script, cells: list[str]) -> dict[str, str]:
        faults = library(self.project).why_not_inline(script)
        if faults:
            raise Faults(faults)
        texts = {f"standalone/{script.name}.py": standalone(self.project, script)}
        for cell in cells:
            texts[f"runnable/{script.name}/{cell}.py"] = runnable(self.project, script, cell)
        return texts

    def lessons(self) -> str:
        """All lessons as plain Markdown."""
        texts = ingredients.of_pages(self.resolver, lesson_paths(self.project))
        return self.shelf.recall("llms-full", flat(texts), lambda: expand(self.project))

    def notebook(self, page: Path, site_url: str) -> str:
        """The notebook of the lesson at `page`, with links to where the site will be."""
        texts = [site_url, *flat(ingredients.of_pages(self.resolver, [page]))]
        return self.shelf.recall(
            f"notebooks/{page.stem}", texts, lambda: notebook(self.project, page, site_url)
        )
