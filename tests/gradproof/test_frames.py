"""An error is placed in the code of whoever can mend it."""

import pytest
import torch

from gradproof.frames import line_of_dump, line_of_error


def raised_by(source):
    try:
        exec(compile(source, "theirs.py", "exec"), {"torch": torch})
    except Exception as error:
        return error


@pytest.mark.parametrize(
    "source",
    [
        "\ntorch.nn.functional.gelu(1)",
        "\ntorch.nn.Linear(1, 1)(torch.ones(3))",
        "\nimport json; json.loads('{')",
    ],
)
def test_the_line_that_called_the_library(source):
    assert line_of_error(raised_by(source)) == "theirs.py:2"


def test_a_syntax_error_is_where_it_stands():
    assert line_of_error(raised_by("\n\ndef f(:")) == "theirs.py:3"


def test_the_innermost_line_of_a_dump():
    dump = f"""Fatal Python error: Segmentation fault

Current thread 0x00007f0000000000 (most recent call first):
  File "{torch.__file__}", line 3 in square
  File "theirs.py", line 15 in backward
  File "theirs.py", line 40 in main
"""
    assert line_of_dump(dump) == "theirs.py:15"
    assert line_of_dump("") == ""
