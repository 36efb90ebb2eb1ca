import pytest

from captures.lines import front_matter_lines, scan


def faults_of(text: str) -> list[str]:
    return [str(fault) for fault in scan(text, "docs/x.md")[1]]


@pytest.mark.parametrize(
    "text",
    [
        "```python\nx = 1\n",
        "```python\nx = 1\n\n```text\nout\n```\n",
        "    ```python\n    x\n\nback\n".replace("    ", "- i\n\n    ", 1),
    ],
)
def test_an_unclosed_fence_is_a_fault_where_it_opens(text: str) -> None:
    (fault,) = faults_of(text)
    line = text.split("\n").index(next(row for row in text.split("\n") if "```python" in row)) + 1
    assert fault.startswith(f"docs/x.md:{line}: this fence is never closed")


def test_an_unclosed_comment_is_a_fault_where_it_opens() -> None:
    (fault,) = faults_of("one\n\n<!-- two\n\nthree\n")
    assert fault.startswith("docs/x.md:3: this comment is never closed")


@pytest.mark.parametrize(
    ("text", "lines"),
    [("# X", 0), ("---\na: 1\n---\n# X", 3), ("---\na: 1\n...\n\n# X", 4), ("text\n---\n", 0)],
)
def test_front_matter(text: str, lines: int) -> None:
    assert front_matter_lines(text) == lines
