"""Whether words stand in a text as whole tokens, so that a quote of 0.5 is no quote of 0.52."""

import re

# A word may stand alone or as a part of a dotted name, but not of a longer or hyphenated word.
_LEFT, _RIGHT = r"(?<!\w)(?<!\w-)", r"(?!\w)(?!-\w)"
# A number has to be all of the number, with its sign, decimals, exponent and unit of hundreds.
_LEFT_OF_NUMBER = r"(?<![\w.+−-])(?<![\w.][:/])(?<!\d,)"
_RIGHT_OF_NUMBER = r"(?!\w)(?![.:/+-]\w)(?!,\d)(?!%)"


def stands(words: str, text: str) -> bool:
    """Whether `words` stand in `text` as whole tokens; runs of whitespace count as one."""
    words, text = " ".join(words.split()), " ".join(text.split())
    left = right = ""
    if re.match(r"[.+−-]?\d", words):
        left = _LEFT_OF_NUMBER
    elif re.match(r"\w", words):
        left = _LEFT
    if re.search(r"\d\.?$", words):
        right = _RIGHT_OF_NUMBER
    elif re.search(r"\w$", words):
        right = _RIGHT
    return re.search(left + re.escape(words) + right, text) is not None
