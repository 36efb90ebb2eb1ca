"""Code spans, inside which nothing of a line of Markdown is markup."""

import re

CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)


def without_code_spans(text: str) -> str:
    """The text with the inside of code spans blanked, so that offsets stay."""
    return CODE_SPAN.sub(lambda span: "\0" * len(span.group()), text)
