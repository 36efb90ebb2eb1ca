"""What a page shows of a run or of a module, and where."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Shown:
    """One form of a page. `start` and `end` are its offsets in the parsed text."""

    page: str
    line: int
    kind: str  # "run" | "source" | "quote" | "value"
    target: str  # "graph_node/invisible", or the module of a source
    cell: str = ""
    key: str = ""  # of a value; the symbol of a source
    machine: str = ""  # "gpu" | "cpu" | "" for both
    text: str = ""  # the quoted words; of a run, what its plots show
    indent: str = field(default="", compare=False)
    start: int = field(default=0, compare=False)
    end: int = field(default=0, compare=False)
