"""What an example said on one machine, as a text file beside the script.

A transcript reads in a diff like the run it records::

    example      graph_node/invisible
    machine      gpu
    device       NVIDIA H200
    ...
    content      sha256:5b0c…

    [launch]
        tensor([0., 1.], device='cuda:0')

    [bandwidth] measured
        gbps: 4101
    figure invisible.gpu.bandwidth.svg sha256:77aa…

    [end of transcript]

What was printed is indented, so that nothing printed can be taken for structure, and volatile
text is already normalised, so that no machine's paths are published. ``content`` is a hash of
every other line: it shows a hand edit. Line ends and trailing spaces do not count.
"""

import hashlib
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from captures.fault import Fault, Faults
from captures.project import Project

MACHINES = ("gpu", "cpu")
PROVENANCE = ("device", "driver", "torch", "triton", "python", "platform", "date", "duration")

_HEADER = ("example", "machine", *PROVENANCE, "fingerprint", "content")
_INDENT = "    "
_END = "[end of transcript]"
_ROW = re.compile(r"(?P<key>[a-z]+) +(?P<value>\S.*)")
_CELL = re.compile(r"\[(?P<name>[a-z0-9-]+)\](?P<measured> measured)?")
_FIGURE = re.compile(r"figure (?P<name>[^\s/]+\.svg) (?P<hash>sha256:[0-9a-f]{64})")


@dataclass(frozen=True)
class Output:
    """What one cell printed, and the files of the plots it left open."""

    cell: str
    measured: bool
    text: str
    figures: tuple[str, ...] = ()


@dataclass(frozen=True)
class Transcript:
    """One run of one example; ``machine`` is "gpu" or "cpu", ``provenance`` says which."""

    example: str
    machine: str
    provenance: Mapping[str, str]
    fingerprint: str
    outputs: tuple[Output, ...]

    def output(self, cell: str) -> Output | None:
        return next((output for output in self.outputs if output.cell == cell), None)


def transcript_path(project: Project, example: str, machine: str) -> Path:
    return project.examples / f"{example}.{machine}.txt"


def write_transcript(
    project: Project, transcript: Transcript, figures: Mapping[str, bytes] | None = None
) -> None:
    """Put the transcript and its ``figures`` (contents by file name) in place.

    All are written beside and renamed at the end, so that a full disk or a write that is
    interrupted leaves the former files whole, and the plots those that the transcript names.
    """
    figures = figures or {}
    path = transcript_path(project, transcript.example, transcript.machine)
    contents = {path.with_name(name): content for name, content in figures.items()}
    contents[path] = _format(transcript, path.parent, figures).encode()
    written: dict[Path, Path] = {}
    try:
        for final, content in contents.items():
            handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{final.name}.")
            written[Path(temporary)] = final
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(temporary).chmod(0o644)
        for temporary_path, final in written.items():
            temporary_path.replace(final)
    finally:
        for temporary_path in written:
            temporary_path.unlink(missing_ok=True)


def read_transcript(project: Project, example: str, machine: str) -> Transcript | None:
    """The committed transcript, or None where there is none.

    Raises ``Faults`` where it is cut short, edited by hand or lacks a plot.
    """
    path = transcript_path(project, example, machine)
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise Faults([Fault(project.relative(path), 0, message)]) from None
    return _Reader(project, example, machine, _lines(text)).read(path.parent)


def parse_transcript(project: Project, example: str, machine: str, text: str) -> Transcript:
    """The transcript that ``text`` is, wherever its plots are.

    Raises ``Faults`` where it is cut short or edited by hand.
    """
    return _Reader(project, example, machine, _lines(text)).read(None)


def content_hash(content: bytes) -> str:
    """The hash of a text file, whatever its line ends."""
    return "sha256:" + hashlib.sha256(content.replace(b"\r\n", b"\n")).hexdigest()


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().replace("\r\n", "\n").split("\n")]


def _seal(lines: list[str]) -> str:
    kept = [line for line in lines if not line.startswith("content ")]
    return content_hash("\n".join(kept).encode())


def _row(key: str, value: str) -> str:
    return f"{key:<12} {value}"


def _format(transcript: Transcript, directory: Path, figures: Mapping[str, bytes]) -> str:
    values = {
        "example": transcript.example,
        "machine": transcript.machine,
        **transcript.provenance,
        "fingerprint": transcript.fingerprint,
    }
    head = [_row(key, values[key] or "unknown") for key in _HEADER if key != "content"]
    body: list[str] = []
    for output in transcript.outputs:
        body += ["", f"[{output.cell}]" + " measured" * output.measured]
        body += [(_INDENT + line).rstrip() for line in _lines(output.text) if output.text.strip()]
        for name in output.figures:
            content = figures[name] if name in figures else (directory / name).read_bytes()
            body.append(f"figure {name} {content_hash(content)}")
    body += ["", _END]
    return "\n".join([*head, _row("content", _seal(head + body)), *body, ""])


@dataclass
class _Reader:
    project: Project
    example: str
    machine: str
    lines: list[str]
    faults: list[Fault] = field(default_factory=list)

    def read(self, plots: Path | None) -> Transcript:
        """Requires the plots to lie whole in the folder ``plots``, unless that is None."""
        self._require_whole()
        blank = self.lines.index("")
        header = self._header(self.lines[:blank])
        outputs = self._outputs(blank, plots)
        if self.faults:
            raise Faults(self.faults)
        return Transcript(
            self.example,
            self.machine,
            {key: header[key] for key in PROVENANCE},
            header["fingerprint"],
            tuple(outputs),
        )

    def _fault(self, line: int, message: str) -> None:
        where = self.project.relative(transcript_path(self.project, self.example, self.machine))
        anew = f"captures run {self.example} --machine {self.machine} --force"
        remedy = f"take that back with `git checkout {where}`, or record it anew with `{anew}`"
        self.faults.append(Fault(where, line, f"{message}; {remedy}"))

    def _require_whole(self) -> None:
        if self.lines[-1] != _END or "" not in self.lines:
            self._fault(len(self.lines), f"is cut short: no `{_END}`")
            raise Faults(self.faults)
        seals = [i for i, line in enumerate(self.lines) if line.startswith("content ")]
        if len(seals) != 1:
            self._fault(1, "has no `content` line")
            raise Faults(self.faults)
        if self.lines[seals[0]] != _row("content", _seal(self.lines)):
            self._fault(seals[0] + 1, "was edited by hand: its lines do not match its hash")
            raise Faults(self.faults)

    def _header(self, lines: list[str]) -> dict[str, str]:
        rows = [_ROW.fullmatch(line) for line in lines]
        header = {row["key"]: row["value"] for row in rows if row}
        if None in rows or tuple(header) != _HEADER:
            self._fault(1, f"has another header than {', '.join(_HEADER)}")
            raise Faults(self.faults)
        expected = {"example": self.example, "machine": self.machine}
        for number, (key, named) in enumerate(expected.items(), 1):
            if header[key] != named:
                self._fault(number, f"is of {key} {header[key]}, but its name says {named}")
        return header

    def _outputs(self, blank: int, plots: Path | None) -> list[Output]:
        cells: list[tuple[str, bool, list[str], list[str]]] = []
        for number, line in enumerate(self.lines[blank:-1], blank + 1):
            cell, figure = _CELL.fullmatch(line), _FIGURE.fullmatch(line)
            if cell:
                cells.append((cell["name"], bool(cell["measured"]), [], []))
            elif cells and figure:
                if plots:
                    self._require_figure(number, plots / figure["name"], figure["hash"])
                cells[-1][3].append(figure["name"])
            elif not line or (cells and line.startswith(_INDENT)):
                if cells:
                    cells[-1][2].append(line[len(_INDENT) :])
            else:
                self._fault(number, f"`{line}` is neither a cell, nor its output, nor a figure")
        return [
            Output(name, measured, "\n".join(text).strip("\n"), tuple(figures))
            for name, measured, text, figures in cells
        ]

    def _require_figure(self, number: int, path: Path, expected: str) -> None:
        if not path.is_file():
            self._fault(number, f"the plot {path.name} is missing")
        elif content_hash(path.read_bytes()) != expected:
            self._fault(number, f"the plot {path.name} was changed since the run")
