"""Where things lie in the project."""

from dataclasses import dataclass
from pathlib import Path

from captures.fault import Fault, Faults


def read_text(path: Path, where: str) -> str:
    """The text of a file, called ``where`` in the ``Faults`` raised if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"is not UTF-8 (byte {error.start}: {error.reason}); save it as UTF-8"
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    raise Faults([Fault(where, 0, message)])


@dataclass(frozen=True)
class Project:
    """A checkout, known by the ``mkdocs.yml`` at its root."""

    root: Path

    @property
    def examples(self) -> Path:
        return self.root / "examples"

    @property
    def src(self) -> Path:
        return self.root / "src"

    @property
    def docs(self) -> Path:
        return self.root / "docs"

    @property
    def cache(self) -> Path:
        """What may be lost: which code already ran on this machine."""
        return self.root / ".cache" / "captures"

    def relative(self, path: Path) -> str:
        """``path`` as faults and transcripts name it."""
        return path.relative_to(self.root).as_posix()

    @classmethod
    def find(cls, start: Path | None = None) -> "Project":
        """The project that holds ``start`` (the current directory unless given).

        Raises ``Faults`` where no directory upward holds a ``mkdocs.yml``.
        """
        start = (start or Path.cwd()).resolve()
        for directory in (start, *start.parents):
            if (directory / "mkdocs.yml").is_file():
                return cls(directory)
        raise Faults(
            [
                Fault(
                    str(start),
                    0,
                    "no mkdocs.yml here or in any directory above; "
                    "run captures inside a checkout of the project",
                )
            ]
        )
