"""What only MkDocs needs: files that no one wrote, watching, and one report of all faults.

The forms themselves are the Markdown extension's. A build writes nothing under docs/: scripts,
notebooks, plots, the Runs page and llms-full.txt are files of the build only.
"""

import logging
import os
import re
import socket
from pathlib import Path
from typing import Any

from jinja2 import FileSystemBytecodeCache
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import Abort, PluginError
from mkdocs.plugins import BasePlugin, CombinedEvent, event_priority
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.toc import get_toc
from mkdocs.utils.yaml import yaml_load

from captures.blocks import RUNS_PAGE, Site, relative
from captures.expand import lesson_paths
from captures.fault import Faults
from captures.figures import inked
from captures.forms import read_page, read_pages
from captures.library import library
from captures.memory import Shelf, write_whole
from captures.outdated import Outdated, summary
from captures.project import Project, read_text
from captures.prose import check_prose
from captures.published import Published
from captures.recapture import Recapture
from captures.rendering import Renderer
from captures.resolve import Resolver
from captures.runs_page import runs_page
from captures.script import script_names
from captures.transcript import MACHINES

# MkDocs counts the warnings of its own loggers; a strict build fails on any.
log = logging.getLogger("mkdocs.plugins.captures")

# It names each notebook three times, and what went wrong as a warning.
for _name in ("mkdocs.mkdocs-jupyter", "mkdocs.plugins.mkdocs_jupyter"):
    logging.getLogger(_name).setLevel(logging.WARNING)

# mkdocs-jupyter, which comes after, loads nbconvert. That would make one exporter of every kind,
# for a second, to list their names in a help text.
os.environ.setdefault("NBCONVERT_DISABLE_CONFIG_EXPORTERS", "1")


class CapturesPlugin(BasePlugin):
    recapture: Recapture | None = None
    serving = False

    def __init__(self) -> None:
        self.told: set[Outdated] = set()

    def on_startup(self, *, command: str, dirty: bool) -> None:
        self.serving = command == "serve"

    def on_config(self, config: MkDocsConfig) -> MkDocsConfig:
        self._require_order(config)
        self.project = Project(Path(config.config_file_path).resolve().parent)
        if self.serving and self.recapture is None:
            _require_free(*config.dev_addr)
            self.recapture = Recapture(self.project)
        self.shelf = Shelf(self.project.cache / "build")
        self.site = Site(
            project=self.project,
            repository=_repository(config),
            publishes=True,
            notes=self.recapture.notes if self.recapture else {},
            faults=[],
        )
        config.mdx_configs.setdefault("captures", {})["site"] = self.site
        return config

    def on_serve(self, server: Any, *, config: MkDocsConfig, builder: Any) -> None:
        server.watch(str(self.project.examples))
        server.watch(str(self.project.src))
        if self.recapture:
            server.watch(str(self.recapture.signals))

    def on_files(self, files: Files, *, config: MkDocsConfig) -> Files:
        resolver = Resolver(self.project)
        self.published = Published(resolver, self.shelf)
        self.renderer = Renderer(resolver, self.shelf, self.site)
        for name in script_names(self.project):
            self._add_scripts(files, config, name)
        self._add_generated(files, config, RUNS_PAGE, lambda: runs_page(self.project))
        self._add_generated(files, config, "llms-full.txt", self.published.lessons)
        for page in lesson_paths(self.project):
            self._add_notebook(files, config, page)
        _drop_unfinished(config)
        return files

    def on_pre_page(self, page: Any, *, config: MkDocsConfig, files: Files) -> Any:
        """Pages that no one wrote are edited where they come from."""
        self.renderer.take(page)
        uri = page.file.src_uri
        origin = ""
        if uri == RUNS_PAGE:
            origin = "src/captures/runs_page.py"
        elif uri.startswith("notebooks/"):
            origin = f"docs/lessons/{Path(uri).stem}.md"
        if origin and self.site.repository:
            page.edit_url = self.site.repository.replace("/blob/", "/edit/", 1) + origin
        return page

    def on_page_read_source(self, *, page: Any, config: MkDocsConfig) -> str | None:
        """A page that is not UTF-8 is a fault like others; MkDocs would end with a traceback."""
        path = page.file.abs_src_path  # None for what was made in memory
        try:
            return read_text(Path(path), f"docs/{page.file.src_uri}") if path else None
        except Faults as found:
            self._note(found)
            return ""

    def on_page_markdown(
        self, markdown: str, *, page: Any, config: MkDocsConfig, files: Files
    ) -> str:
        path = self.project.docs / page.file.src_uri
        is_lesson = path.parent == self.project.docs / "lessons"
        if not is_lesson or files.get_file_from_path(f"notebooks/{path.stem}.ipynb") is None:
            return markdown  # or a lesson with faults, which are reported
        shown = dict.fromkeys(form.target for form in read_page(self.project, path)[0] if form.cell)
        return markdown + "\n\n" + downloads(f"docs/{page.file.src_uri}", path.stem, list(shown))

    def on_page_content(self, html: str, *, page: Any, config: MkDocsConfig, files: Files) -> str:
        if page.file.src_uri.startswith("notebooks/"):
            page.meta["search"] = {"exclude": True}  # its lesson is found instead
            page.toc = get_toc([])  # mkdocs-jupyter lists headings under ids that they do not have
        return html

    @event_priority(100)
    def _hide_code(self, context: Any, *, page: Any, config: MkDocsConfig, nav: Any) -> None:
        """A search is for words: what a page says and what its runs printed."""
        self._content = page.content
        excluded = (page.meta.get("search") or {}).get("exclude")
        page.content = "" if excluded else _CODE.sub("", page.content)

    @event_priority(-100)
    def _show_code(self, context: Any, *, page: Any, config: MkDocsConfig, nav: Any) -> None:
        page.content = self._content

    on_page_context = CombinedEvent(_hide_code, _show_code)

    def on_env(self, env: Any, *, config: MkDocsConfig, files: Files) -> None:
        """Every page is rendered and none is written yet: report all that is wrong at once."""
        self._keep_templates(env)
        self._report_stale()
        faults = sorted({*(self.site.faults or ()), *check_prose(self.project)})
        library(self.project).memory.save(forget=False)
        for fault in faults:
            log.error("%s", fault)
        if faults and not self.serving:
            noun = "fault" if len(faults) == 1 else "faults"
            raise PluginError(
                f"captures: {len(faults)} {noun} in what the pages show, listed above"
            )

    def _require_order(self, config: MkDocsConfig) -> None:
        names = list(config.plugins)
        if "mkdocs-jupyter" in names and names.index("mkdocs-jupyter") < names.index("captures"):
            raise PluginError(
                "mkdocs.yml: plugins: list captures before mkdocs-jupyter, which otherwise "
                "publishes the notebooks as raw JSON"
            )

    def _keep_templates(self, env: Any) -> None:
        """Compiling the theme's templates takes longer than all else that is done with them."""
        folder = self.project.cache / "templates"
        folder.mkdir(parents=True, exist_ok=True)
        env.bytecode_cache = FileSystemBytecodeCache(str(folder))

    def _add_scripts(self, files: Files, config: MkDocsConfig, name: str) -> None:
        try:
            written = self.published.scripts(name)
        except Faults as found:
            self._note(found)
            return
        for uri, text in written.items():
            _add(files, config, uri, text)
        lesson, _, example = name.partition("/")
        for path in sorted((self.project.examples / lesson).glob(f"{example}.*.svg")):
            _add(files, config, f"examples/{lesson}/{path.name}", inked(path.read_bytes()))

    def _add_generated(self, files: Files, config: MkDocsConfig, uri: str, write: Any) -> None:
        try:
            _add(files, config, uri, write())
        except Faults as found:
            self._note(found)
            _add(files, config, uri, "")  # or every link to it is a fault as well

    def _add_notebook(self, files: Files, config: MkDocsConfig, page: Path) -> None:
        """As a file on disk: mkdocs-jupyter passes over files that exist in memory only."""
        folder = self.project.cache / "notebooks"
        uri = f"notebooks/{page.stem}.ipynb"
        try:
            content = self.published.notebook(page, self._address(config))
        except Faults as found:
            self._note(found)
            return
        path = folder / uri
        if not path.is_file() or path.read_text(encoding="utf-8") != content:
            write_whole(path, content)
        file = File(
            uri,
            str(folder),
            config.site_dir,
            config.use_directory_urls,
            inclusion=InclusionLevel.NOT_IN_NAV,
        )
        files.append(file)

    def _address(self, config: MkDocsConfig) -> str:
        """Where the site will be, where `mkdocs serve` says only where it is now."""
        if not self.serving:
            return config.site_url or ""
        with Path(config.config_file_path).open("rb") as settings:
            return yaml_load(settings).get("site_url") or ""

    def _note(self, found: Faults) -> None:
        assert self.site.faults is not None
        self.site.faults += found.faults

    def _report_stale(self) -> None:
        """Say which transcripts are of other code, and in `serve` have their examples run."""
        stale: dict[str, str] = {}
        outdated: list[Outdated] = []
        for name in script_names(self.project):
            try:
                script = library(self.project).script(name)
                transcripts = library(self.project).transcripts(script)
                code = library(self.project).fingerprint(script)
            except Faults as found:
                self._note(found)
                continue
            old = [each.machine for each in transcripts if each.fingerprint != code]
            outdated += [Outdated(name, machine, "stale") for machine in old]
            if old or not transcripts:
                stale[name] = code
        self._tell_of(outdated)
        if self.recapture:
            self.recapture.start(stale)

    def _tell_of(self, outdated: list[Outdated]) -> None:
        """A strict build refuses a CPU run of other code; a GPU run gets a badge on the page.

        Who edits pages is told once, not at every change.
        """
        forms, _ = read_pages(self.project)
        for machine in MACHINES:
            new = [o for o in outdated if o.machine == machine and o not in self.told]
            if new:
                report = log.warning if machine == "cpu" and not self.serving else log.info
                report("%s", summary(new, self.project, forms))
        self.told.update(outdated)


def _require_free(host: str, port: int) -> None:
    """MkDocs asks for the port when the pages are built, and ends with a traceback."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        socket.create_server((host, port), family=family).close()
    except (OSError, OverflowError):
        raise Abort(
            f"captures: cannot serve on port {port} of {host}, which another program may hold; "
            "take another one: make serve PORT=8001"
        ) from None


_CODE = re.compile(r'<div class="(?!run-output )[^"]*highlight".*?</pre></div>', re.DOTALL)


def downloads(page: str, lesson: str, examples: list[str]) -> str:
    """The end of a lesson: each of its examples as files, and the lesson as a notebook."""
    if not examples:
        return ""
    lines = ["## Take it with you { #take-it-with-you }", ""]
    lines += ["| As it stands here | On its own, kernels written out |", "|---|---|"]
    for name in examples:
        script = relative(page, f"scripts/{name}.py")
        alone = relative(page, f"standalone/{name}.py")
        file = f"{name.rpartition('/')[2]}.py"
        lines.append(f"| [`{file}`]({script}) | [`{file}` on its own]({alone}) |")
    book = relative(page, f"notebooks/{lesson}.ipynb")
    lines += ["", f"The whole lesson is also [a notebook]({book}) with its recorded outputs.", ""]
    return "\n".join(lines)


def _add(files: Files, config: MkDocsConfig, uri: str, content: str | bytes) -> None:
    inclusion = InclusionLevel.NOT_IN_NAV
    files.append(File.generated(config, uri, content=content, inclusion=inclusion))


def _drop_unfinished(config: MkDocsConfig) -> None:
    """mkdocs-jupyter trusts what it kept, even where a build was killed while it was written."""
    jupyter: Any = config.plugins.get("mkdocs-jupyter")
    for path in Path(jupyter.config["cache_dir"]).glob("*.json") if jupyter else ():
        if not path.read_bytes().endswith(b"}"):
            path.unlink()


def _repository(config: MkDocsConfig) -> str:
    """The address of the repository's files, from that under which the pages are edited."""
    address = config.edit_uri or ""
    if "://" not in address:
        address = f"{(config.repo_url or '').rstrip('/')}/{address}" if config.repo_url else ""
    pages = Path(config.docs_dir).name
    return re.sub(rf"{re.escape(pages)}/?$", "", address.replace("/edit/", "/blob/", 1))
