"""What two runs may say differently without saying anything different."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from captures.transcript import Output

# Each rule names a kind of text that moves from run to run. None may match a decimal, a dtype
# or a device: those are what an example is there to show.
_RULES: dict[str, tuple[re.Pattern[str], str]] = {
    # `<function f at 0x7f3a5c0b2d40>`. A bare hexadecimal number is left alone, since bit
    # patterns are claims, unless it has the twelve digits of a user-space pointer.
    "address after at": (re.compile(r"\bat 0x[0-9a-fA-F]{6,16}\b"), "at 0x…"),
    "pointer": (re.compile(r"\b0x(?:5[56]|7[ef]|aa|ff)[0-9a-f]{10}\b"), "0x…"),
    # `/home/ada/venv/lib/python3.12/site-packages/torch/x.py`: where a file lies is the
    # machine's business, its name is the example's. Each part begins like a name, so that
    # `GB/s`, `1/2/3` and `a / b` stay.
    "directory": (
        re.compile(r"(?<![\w./…:~-])/(?:\.?[A-Za-z_][\w.+@-]*/)+(?=[\w.<])"),
        "…/",
    ),
    "Windows directory": (re.compile(r"\b[A-Za-z]:\\(?:[^\\/:*?\"<>|\n]+\\)+"), "…/"),
    # The random names of Python's tempfile.
    "temporary name": (re.compile(r"(?<=/)tmp[a-z0-9_]{8}\b"), "tmp…"),
    # `pid` alone is a program id in Triton's world and therefore a claim.
    "process id": (re.compile(r"\b([Pp]rocess id[ =:]+|\(pid[ =:]+)\d+\b(?!\.\d)"), r"\1…"),
}

# A number that stands by itself: the 16 of fp16 and the 200 of H200 are part of a name.
_NUMBER = re.compile(r"(?<![A-Za-z0-9_.])[-+]?\d+(?:[.,]\d+)*(?:[eE][-+]?\d+)?")
_SPACES = re.compile(r"[ \t]+")


def normalise(text: str) -> str:
    """``text`` with everything volatile replaced; doing it twice changes nothing more."""
    for pattern, replacement in _RULES.values():
        text = pattern.sub(replacement, text)
    return text


@lru_cache(maxsize=4096)  # every quote of an output asks for them
def claims(output: "Output") -> str:
    """What of an output is compared: all of it, but no digits of what was measured."""
    text = normalise(output.text)
    if output.measured:
        # Columns move with the width of their digits.
        text = _SPACES.sub(" ", _NUMBER.sub("#", text))
    return text
