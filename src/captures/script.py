"""An example script, read into its header and its ``# %%`` cells."""

import ast
import difflib
import json
import re
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from captures.fault import Fault, Faults
from captures.project import Project, read_text

TAGS = frozenset({"measured"})
TIME_LIMIT = 120.0

_HEADERS = ("needs", "time limit", "data")
_NAME = re.compile(r"[\w.-]+/[\w.-]+")
_KEBAB = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_MARKER = re.compile(r"(?P<indent>\s*)#(?P<gap>\s*)%%(?P<rest>.*)")
_TITLE = re.compile(r" (?P<name>\S+)(?: tags=(?P<tags>.*))?")
_HEADER = re.compile(r"#\s*(?P<key>[A-Za-z][A-Za-z_ -]*?)\s*:\s*(?P<value>.*?)\s*")
_NEEDS = re.compile(r"gpu(?: [1-9]\d*GB)?|torch")
_SECONDS = re.compile(r"(\d+(?:\.\d+)?) s")


@dataclass(frozen=True)
class Cell:
    """One cell. ``line`` is that of its ``# %%``, ``first_line`` that of its code."""

    name: str
    line: int
    tags: frozenset[str]
    source: str
    first_line: int

    @property
    def measured(self) -> bool:
        return "measured" in self.tags


@dataclass(frozen=True)
class Script:
    """One example. ``needs`` is "", "gpu", "gpu 80GB" or "torch"; ``time_limit`` in seconds."""

    project: Project
    name: str
    path: Path
    text: str
    needs: str
    time_limit: float
    data: tuple[Path, ...]
    cells: tuple[Cell, ...]
    preamble: str

    def cell(self, name: str) -> Cell | None:
        return next((cell for cell in self.cells if cell.name == name), None)

    @property
    def needs_gpu(self) -> bool:
        return self.needs.startswith("gpu")

    @property
    def memory_needed(self) -> int:
        """The device memory asked for, in GB; 0 where none is."""
        return int("0" + "".join(filter(str.isdigit, self.needs)))


@lru_cache(maxsize=1024)
def parse(source: str) -> ast.Module:
    """The syntax tree of a cell or module, to be read only: everybody who asks gets the same.

    Raises ``SyntaxError``, also for what Python refuses otherwise, such as code nested too deeply.
    """
    try:
        return ast.parse(source)
    except (MemoryError, RecursionError, ValueError) as error:
        raise SyntaxError(str(error) or "too complex") from None


def script_names(project: Project) -> list[str]:
    """Every example, sorted: ``graph_node/invisible``. A leading underscore hides a helper."""
    paths = project.examples.glob("*/*.py")
    return sorted(
        path.relative_to(project.examples).with_suffix("").as_posix()
        for path in paths
        if not path.name.startswith("_")
    )


def read_script(project: Project, name: str) -> Script:
    """The example called ``name``; raises ``Faults`` with everything that is wrong in it."""
    path = project.examples / f"{name}.py"
    where = project.relative(path)
    if not _NAME.fullmatch(name):
        message = "rename it; a page can ask only for names of letters, digits, `_`, `-`, `.`"
        raise Faults([Fault(ascii(where)[1:-1], 0, message)])
    if not path.exists():
        raise Faults([Fault(where, 0, "there is no such example")])
    return _Reader(project, name, path, where, read_text(path, where)).read()


@dataclass
class _Reader:
    project: Project
    name: str
    path: Path
    where: str
    text: str
    faults: list[Fault] = field(default_factory=list)

    def fault(self, line: int, message: str) -> None:
        self.faults.append(Fault(self.where, line, message))

    def read(self) -> Script:
        lines = self.text.split("\n")
        starts = [number for number, line in enumerate(lines, 1) if self._opens_cell(number, line)]
        bounds = [*starts, len(lines) + 1]
        head = lines[: bounds[0] - 1]
        if not starts:
            self.fault(1, "has no cell; begin one with a line such as `# %% setup`")
        headers = self._headers(head)
        self._require_no_code(head)
        cells = tuple(
            self._cell(start, lines[start - 1], lines[start : stop - 1])
            for start, stop in zip(starts, bounds[1:], strict=True)
        )
        self._require_unique(cells)
        script = Script(
            project=self.project,
            name=self.name,
            path=self.path,
            text=self.text,
            needs=self._needs(headers),
            time_limit=self._time_limit(headers),
            data=self._data(headers),
            cells=cells,
            preamble="\n".join(head).strip("\n"),
        )
        if self.faults:
            raise Faults(self.faults)
        return script

    def _opens_cell(self, number: int, line: str) -> bool:
        """Whether the line begins a cell; editors disagree about any spelling but ``# %%``."""
        marker = _MARKER.fullmatch(line)
        if marker is None:
            return False
        if marker["indent"]:
            self.fault(number, "an indented `# %%` splits the block it stands in; write it flush")
            return False
        if marker["gap"] != " ":
            self.fault(number, "write a cell marker as `# %% name`, with one space after `#`")
        return True

    def _cell(self, number: int, title: str, body: list[str]) -> Cell:
        name, tags = self._title(number, title)
        first = next((i for i, line in enumerate(body) if line.strip()), 0)
        source = "\n".join(body[first:]).rstrip()
        first_line = number + 1 + first
        self._require_code(name, number, source, first_line)
        return Cell(name, number, tags, source, first_line)

    def _title(self, number: int, line: str) -> tuple[str, frozenset[str]]:
        title = _TITLE.fullmatch(line.partition("%%")[2].rstrip())
        if title is None:
            self.fault(
                number,
                f"`{line.strip()}` is no cell title; "
                'expected `# %% name` or `# %% name tags=["measured"]`',
            )
            return "", frozenset()
        if not _KEBAB.fullmatch(title["name"]):
            self.fault(number, f"cell name `{title['name']}` is not kebab-case (a-z, 0-9, -)")
        return title["name"], self._tags(number, title["tags"])

    def _tags(self, number: int, text: str | None) -> frozenset[str]:
        if text is None:
            return frozenset()
        try:
            tags = json.loads(text)
        except (RecursionError, ValueError):
            tags = None
        if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
            self.fault(number, f'malformed `tags={text}`; expected `tags=["measured"]`')
            return frozenset()
        for tag in sorted(set(tags) - TAGS):
            self.fault(number, f"unknown tag `{tag}`; known: {', '.join(sorted(TAGS))}")
        return frozenset(tags)

    def _require_code(self, name: str, number: int, source: str, first_line: int) -> None:
        try:
            tree = parse(source)
        except SyntaxError as error:
            line = first_line + (error.lineno or 1) - 1
            self.fault(line, f"cell `{name}` does not parse by itself: {error.msg}")
            return
        if not tree.body:
            self.fault(number, f"cell `{name}` is empty")
        for offset, text in enumerate(source.split("\n")):
            header = _HEADER.fullmatch(text)
            if header and header["key"] in _HEADERS:
                self.fault(
                    first_line + offset,
                    f"`# {header['key']}:` stands in a cell; move it above the first cell",
                )

    def _require_unique(self, cells: tuple[Cell, ...]) -> None:
        seen: dict[str, int] = {}
        for cell in cells:
            if cell.name and cell.name in seen:
                self.fault(
                    cell.line, f"cell `{cell.name}` is already defined on line {seen[cell.name]}"
                )
            seen.setdefault(cell.name, cell.line)

    def _require_no_code(self, head: list[str]) -> None:
        try:
            body = parse("\n".join(head)).body
        except SyntaxError as error:
            self.fault(error.lineno or 1, f"does not parse: {error.msg}")
            return
        for statement in body:
            is_text = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
            if not is_text:
                self.fault(
                    statement.lineno,
                    "code before the first cell belongs to no cell; put `# %% setup` above it",
                )
                return

    def _headers(self, head: list[str]) -> dict[str, list[tuple[int, str]]]:
        found: dict[str, list[tuple[int, str]]] = {key: [] for key in _HEADERS}
        for number, line in enumerate(head, 1):
            header = _HEADER.fullmatch(line)
            if header is None:
                continue
            key = header["key"]
            if key in found:
                found[key].append((number, header["value"]))
                continue
            near = difflib.get_close_matches(key.lower().replace("-", " "), _HEADERS, 1, 0.8)
            if near:
                self.fault(number, f"unknown header `# {key}:`; did you mean `# {near[0]}:`?")
        for key in ("needs", "time limit"):
            for number, _ in found[key][1:]:
                self.fault(number, f"a second `# {key}:`; keep one")
        return found

    def _needs(self, headers: dict[str, list[tuple[int, str]]]) -> str:
        for number, value in headers["needs"]:
            if not _NEEDS.fullmatch(value):
                self.fault(
                    number, f"`# needs: {value}` is unknown; expected gpu, gpu 80GB or torch"
                )
            return value
        return ""

    def _time_limit(self, headers: dict[str, list[tuple[int, str]]]) -> float:
        for number, value in headers["time limit"]:
            seconds = _SECONDS.fullmatch(value)
            if seconds and float(seconds[1]) > 0:
                return float(seconds[1])
            self.fault(number, f"`# time limit: {value}` is malformed; expected `300 s`")
        return TIME_LIMIT

    def _data(self, headers: dict[str, list[tuple[int, str]]]) -> tuple[Path, ...]:
        paths = []
        for number, value in headers["data"]:
            try:
                path = (self.path.parent / value).resolve(strict=True)
            except (OSError, RuntimeError, ValueError):  # missing, a loop of links, no name at all
                path = self.path.parent
            if not path.is_file():
                self.fault(number, f"data file `{value}` does not exist beside the script")
            elif not path.is_relative_to(self.project.root.resolve()):
                self.fault(number, f"data file `{value}` lies outside the project")
            paths.append(path)
        return tuple(paths)
