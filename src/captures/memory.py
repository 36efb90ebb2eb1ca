"""What was once worked out of texts, kept in files until one of the texts changes.

A key is a hash of all that went in: the texts, this package's own code and Python's version. So
what is recalled is never wrong, and the files may be lost or damaged at any time.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any


class Memory:
    """Begins with what the file at ``path`` holds, or empty without one."""

    def __init__(self, path: Path | None = None):
        self.path = path
        self._known = _read(path) if path else {}
        self._used: dict[str, Any] = {}

    def recall(self, kind: str, *texts: str, work: Callable[[], Any]) -> Any:
        """What ``work`` made of ``texts``, as JSON holds it; done now where it never was."""
        key = _key(kind, *texts)
        if key not in self._used:
            self._used[key] = self._known[key] if key in self._known else work()
        return self._used[key]

    def save(self, *, forget: bool = True) -> None:
        """Keep what was asked for since this was read, and the rest unless it is to be forgotten.

        Only who has asked for everything there is knows what may be forgotten.
        """
        kept = self._used if forget else self._known | self._used
        if self.path is not None and kept != self._known:
            write_whole(self.path, json.dumps(kept))


class Shelf:
    """What was last made under each name, in a file of its own below ``folder``."""

    def __init__(self, folder: Path):
        self.folder = folder

    def recall(self, name: str, texts: Iterable[str], work: Callable[[], Any]) -> Any:
        """What ``work`` made of ``texts``, as JSON holds it; what it made as None is not kept."""
        path = self.folder / f"{name}.json"
        key = _key(name, *texts)
        kept = _read(path)
        if kept.get("key") == key:
            return kept["made"]
        made = work()
        if made is not None:
            write_whole(path, json.dumps({"key": key, "made": made}))
        return made


def _read(path: Path) -> dict[str, Any]:
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return known if isinstance(known, dict) else {}


def write_whole(path: Path, text: str) -> None:
    """Write beside and rename, so that nobody reads half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    temporary.replace(path)


def _key(kind: str, *texts: str) -> str:
    digest = hashlib.sha256(_own_code())
    for text in (kind, *texts):
        content = text.encode()
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()


@cache
def _own_code() -> bytes:
    digest = hashlib.sha256(sys.version.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.digest()
