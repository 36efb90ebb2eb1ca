"""Pages as MkDocs renders them from Markdown, recalled where nothing has changed.

A page of which something was said is rendered anew by the next build, which has to say it too.
"""

import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markdown.extensions import Extension
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import AnchorLink, get_toc

from captures import ingredients
from captures.blocks import Site
from captures.fault import Faults
from captures.fingerprint import flat
from captures.memory import Shelf
from captures.resolve import Resolver

_SYMBOL = re.compile(r"^\s*:::\s*\S+\s*$", re.MULTILINE)


class Renderer:
    """Renders the pages of one build."""

    def __init__(self, resolver: Resolver, shelf: Shelf, site: Site):
        self.resolver = resolver
        self.shelf = shelf
        self.site = site
        self._surroundings: list[str] = []

    def take(self, page: Any) -> None:
        """Have the page rendered here."""
        # As mkdocs-jupyter does it: MkDocs has no event for this.
        page.render = lambda config, files: self._render(page, config, files)

    def _render(self, page: Any, config: MkDocsConfig, files: Files) -> None:
        try:
            texts = self._texts(page, config, files)
        except Faults:  # which the page's own rendering finds too, and reports
            texts = None
        if texts is None:
            Page.render(page, config, files)
            return
        made = self.shelf.recall(
            f"pages/{page.file.src_uri}", texts, lambda: self._made(page, config, files)
        )
        if page.content is None:
            _put_in(page, made, files)
            _Entries(config).repeat(page, made["entries"])

    def _texts(self, page: Any, config: MkDocsConfig, files: Files) -> list[str]:
        """Everything that the page's HTML is made of."""
        project = self.resolver.project
        path = project.docs / page.file.src_uri
        texts = ingredients.of_pages(self.resolver, [path] if path.is_file() else [])
        if _SYMBOL.search(page.markdown):
            texts |= ingredients.of_packages(project)
        notes = [f"{name} {note}" for name, note in sorted(self.site.notes.items())]
        return [
            page.file.src_uri,
            page.markdown,
            *self._around(config, files),
            *notes,
            *flat(texts),
        ]

    def _around(self, config: MkDocsConfig, files: Files) -> list[str]:
        """What all pages have in common: settings, programs, and the files that links lead to."""
        if not self._surroundings:
            settings = Path(config.config_file_path).read_text(encoding="utf-8")
            where = (str(config.use_directory_urls), self.site.repository)
            names = (f"{file.src_uri} {file.url} {file.inclusion}" for file in files)
            self._surroundings = [settings, *where, "\n".join(names), *_programs()]
        return self._surroundings

    def _made(self, page: Any, config: MkDocsConfig, files: Files) -> dict[str, Any] | None:
        assert self.site.faults is not None
        faults = len(self.site.faults)
        with _Listener() as listener, _Entries(config) as entries:
            Page.render(page, config, files)
        # A list of backlinks is put together from all pages, after all are rendered.
        if (
            listener.heard
            or not listener.listens
            or len(self.site.faults) > faults
            or "<backlinks" in page.content
        ):
            return None
        links = page.links_to_anchors or {}
        return {
            "content": page.content,
            "toc": [_token(link) for link in page.toc],
            "title": page._title_from_render,
            "anchors": sorted(page.present_anchor_ids),
            "links": {file.src_uri: anchors for file, anchors in links.items()},
            "entries": entries.made,
        }


def _put_in(page: Any, made: dict[str, Any], files: Files) -> None:
    page.content = made["content"]
    page.toc = get_toc(made["toc"])
    page._title_from_render = made["title"]
    page.present_anchor_ids = set(made["anchors"])
    page.links_to_anchors = {files.src_uris[uri]: each for uri, each in made["links"].items()}


def _token(link: AnchorLink) -> Any:
    """A heading as the extension `toc` hands it over."""
    children = [_token(child) for child in link.children]
    return {"name": link.title, "id": link.id, "level": link.level, "children": children}


def _programs() -> list[str]:
    """The installed packages with their versions, and the code of the Markdown extensions."""
    folders = [folder for folder in map(Path, filter(None, sys.path)) if folder.is_dir()]
    versions = sorted(path.name for folder in folders for path in folder.glob("*.*-info"))
    modules = (sys.modules.get(each.__module__) for each in _extensions(Extension))
    files = {getattr(module, "__file__", None) for module in modules}
    return [*versions, *(Path(file).read_text("utf-8") for file in sorted(filter(None, files)))]


def _extensions(kind: type[Extension]) -> Iterator[type[Extension]]:
    for each in kind.__subclasses__():
        yield each
        yield from _extensions(each)


class _Entries:
    """What a page enters for all others: its anchors with autorefs, symbols with mkdocstrings."""

    def __init__(self, config: MkDocsConfig):
        self.autorefs: Any = config.plugins.get("autorefs")
        mkdocstrings: Any = config.plugins.get("mkdocstrings")
        self.inventory: Any = mkdocstrings.handlers.inventory if mkdocstrings else {}
        self.made: dict[str, list[Any]] = {"anchors": [], "symbols": []}

    def __enter__(self) -> "_Entries":
        self.before = set(self.inventory)
        if self.autorefs:
            # On this one object and for this one page: it tells nobody what was registered.
            self.register = self.autorefs.register_anchor
            self.autorefs.register_anchor = self._register
        return self

    def __exit__(self, *_: object) -> None:
        if self.autorefs:
            del self.autorefs.register_anchor
        symbols = [item for name, item in self.inventory.items() if name not in self.before]
        self.made["symbols"] = [vars(item) for item in symbols]

    def _register(self, page: Any, *identifiers: str, **options: Any) -> None:
        self.made["anchors"].append((identifiers, options))
        self.register(page, *identifiers, **options)

    def repeat(self, page: Any, made: dict[str, list[Any]]) -> None:
        for identifiers, options in made["anchors"]:
            self.autorefs.register_anchor(page, *identifiers, **options)
        for symbol in made["symbols"]:
            self.inventory.register(**symbol)


class _Listener(logging.Handler):
    """Hears whether anything is said to whoever builds the site."""

    logger = logging.getLogger("mkdocs")

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.heard = False

    @property
    def listens(self) -> bool:
        """Whether all would be said, which it is not in a quiet build."""
        return self.logger.isEnabledFor(logging.INFO)

    def emit(self, record: logging.LogRecord) -> None:
        self.heard = True

    def __enter__(self) -> "_Listener":
        self.logger.addHandler(self)
        return self

    def __exit__(self, *_: object) -> None:
        self.logger.removeHandler(self)
