"""The fingerprint of the code that an example runs: what must stay for a transcript to hold."""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from captures import imports
from captures.canonical import canonical, spell
from captures.fault import Fault, Faults
from captures.imports import parsed
from captures.memory import Memory
from captures.project import Project, read_text
from captures.script import Script


def fingerprint(project: Project, script: Script) -> str:
    """``sha256:…`` over the script's cells, its first-party modules and its data files."""
    return Sources(project).fingerprint(script)


def tree_fingerprint(paths: Iterable[Path], memory: Memory | None = None) -> str:
    """``sha256:…`` over every Python file in and under ``paths``."""
    memory = memory or Memory()
    digest = hashlib.sha256()
    for root in sorted(paths):
        files = sorted(root.rglob("*.py")) if root.is_dir() else [root]
        for path in files:
            name = path.relative_to(root.parent).as_posix()
            _add(digest, name, _digest(memory, read_text(path, name), name))
    return f"sha256:{digest.hexdigest()}"


class Sources:
    """The first-party modules as they stand now: each is read, and its imports followed, once."""

    def __init__(self, project: Project, memory: Memory | None = None):
        self.project = project
        self.memory = memory or Memory()
        self._stamps: dict[Path, Stamp] = {}
        self._texts: dict[Path, str] = {}
        self._fingerprints: dict[Script, str] = {}
        self._drawn_on: dict[Script, dict[str, str]] = {}
        self._reached: dict[tuple[Path, tuple[str, str]], tuple[Path, ...]] = {}
        self._direct: dict[tuple[Path, Path], list[Path]] = {}
        # A file that comes or goes changes its directory.
        directories = (path for path in project.src.rglob("*") if path.is_dir())
        self._note(project.src, *directories)

    def hold(self) -> bool:
        """Whether every file that was read, and every directory looked into, is as it was."""
        return all(stamp == stamp_of(path) for path, stamp in self._stamps.items())

    def fingerprint(self, script: Script) -> str:
        if script not in self._fingerprints:
            try:
                self._note(*script.data)
                data = [hashlib.sha256(path.read_bytes()).hexdigest() for path in script.data]
                self._fingerprints[script] = self.memory.recall(
                    "fingerprint", *flat(self.texts(script)), *data, work=lambda: self._take(script)
                )
            except RecursionError:
                where = self.project.relative(script.path)
                what = "this, or code that it imports, nests too deeply"
                fault = Fault(where, 0, f"{what}; split its longest statement")
                raise Faults([fault]) from None
        return self._fingerprints[script]

    def _take(self, script: Script) -> str:
        digest = hashlib.sha256()
        for cell in script.cells:
            _add(digest, f"cell {cell.name} {sorted(cell.tags)}", canonical(cell.source).encode())
        for path in self.modules(script):
            name = self.project.relative(path)
            _add(digest, name, _digest(self.memory, self._text(path), name))
        for path in script.data:
            _add(digest, self.project.relative(path), path.read_bytes())
        return f"sha256:{digest.hexdigest()}"

    def texts(self, script: Script) -> dict[str, str]:
        """The texts, by name, of the script and of every module that it can load."""
        if script not in self._drawn_on:
            self._drawn_on[script] = {
                self.project.relative(path): self._text(path)
                for path in (script.path, *self.modules(script))
            }
        return self._drawn_on[script]

    def modules(self, script: Script) -> list[Path]:
        """Every module under ``src`` or beside the script that it can load, however late."""
        beside = script.path.parent
        self._note(beside)
        found: set[Path] = set()
        name = self.project.relative(script.path)
        pending = self._files(beside, script.text, "", name)
        while pending:
            path = pending.pop()
            if path not in found and path != script.path:
                found.add(path)
                pending += self._imported_by(path, beside)
        return sorted(found)

    def _imported_by(self, path: Path, beside: Path) -> list[Path]:
        key = (path, beside)
        if key not in self._direct:
            root = next(r for r in (beside, self.project.src) if path.is_relative_to(r))
            package = ".".join(path.relative_to(root).parts[:-1])
            name = self.project.relative(path)
            self._direct[key] = self._files(beside, self._text(path), package, name)
        return self._direct[key]

    def _files(self, beside: Path, text: str, package: str, name: str) -> list[Path]:
        def work() -> list[tuple[str, str]]:
            return imports.read(parsed(text, name), text, package)

        files: list[Path] = []
        for module, member in self.memory.recall("imports", text, package, work=work):
            wanted = (module, member)
            key = (beside, wanted)
            if key not in self._reached:
                self._reached[key] = tuple(imports.files(wanted, (beside, self.project.src)))
            files += self._reached[key]
        return files

    def _text(self, path: Path) -> str:
        if path not in self._texts:
            self._note(path)
            self._texts[path] = read_text(path, self.project.relative(path))
        return self._texts[path]

    def _note(self, *paths: Path) -> None:
        for path in paths:
            self._stamps.setdefault(path, stamp_of(path))


def flat(texts: Mapping[str, str]) -> list[str]:
    """Names and texts in one row, as a memory takes them."""
    return [part for pair in texts.items() for part in pair]


Stamp = tuple[int, int] | None


def stamp_of(path: Path) -> Stamp:
    """What changes when a file or directory does; None where there is none."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


def _digest(memory: Memory, text: str, name: str) -> bytes:
    """The hash of a module's meaning; raises ``Faults`` under the file's ``name``."""

    def work() -> str:
        return hashlib.sha256(spell(parsed(text, name)).encode()).hexdigest()

    return bytes.fromhex(memory.recall("digest", text, work=work))


def _add(digest: "hashlib._Hash", name: str, content: bytes) -> None:
    # Lengths first, so that no two lists of files run together into the same bytes.
    for part in (name.encode(), content):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
