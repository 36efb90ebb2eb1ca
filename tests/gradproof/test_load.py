"""Whatever a command line names, it is found, or one line says what is wrong and where."""

import re
import sys
import textwrap

import pytest
import torch

from gradproof.load import UnusableError, load_case

OPS = """
    import torch
    from gradproof import Case

    FIVE = 5

    def op(x):
        return x * x

    def scaled(x, *, scale):
        return x * scale

    def inputs():
        return (torch.ones(3),)

    def no_tuple():
        return torch.ones(3)

    def broken_inputs():
        raise OSError("no data")

    def case():
        return Case(op, inputs(), torch.square)

    A_CASE = case()

    def broken_case():
        return Case(op, torch.ones(3))

    def five():
        return FIVE
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A working folder with an ops.py; nothing imported from it is remembered."""
    (tmp_path / "ops.py").write_text(textwrap.dedent(OPS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere:op"], "no module named 'nowhere', wanted for 'nowhere'"),
        (["ops.py:missing"], "'ops.py:missing': ops.py has no missing"),
        (["missing.py:op"], "no file 'missing.py'"),
        (["ops"], "'ops': expected package.module:name or path/to/file.py:name"),
        (["torch:exp"], "'torch:exp' is no Case and returns none: give its inputs"),
        (["ops.py:op"], "'ops.py:op' is no Case and returns none: give its inputs"),
        (["ops.py:FIVE"], "'ops.py:FIVE' is an int: expected an op or a Case"),
        (["ops.py:FIVE", "float32[3]"], "'ops.py:FIVE': expected a callable, got int"),
        (["torch:exp", "float32[3]", "torch:pi"], "'torch:pi': expected a callable, got float"),
        (
            ["ops.py:five"],
            "'ops.py:five' returns an int, not a Case: return one, or give the op's inputs",
        ),
        (
            ["ops.py:case", "float32[3]"],
            "'ops.py:case' returns a Case, which has its inputs; leave out --inputs",
        ),
        (
            ["ops.py:A_CASE", "float32[3]"],
            "'ops.py:A_CASE' is a Case, which has its inputs; leave out --inputs",
        ),
        (
            ["ops.py:scaled", "float32[3]"],
            "'ops.py:scaled' cannot be called with 1 input: missing a required argument: 'scale'; "
            "give as many as it takes, or name a function of the inputs alone that calls it",
        ),
        (
            ["ops.py:op", "float32[3], float32[3]"],
            "'ops.py:op' cannot be called with 2 inputs: too many positional arguments; "
            "give as many as it takes, or name a function of the inputs alone that calls it",
        ),
    ],
)
def test_what_a_name_leads_to_is_said_in_one_line(arguments, message):
    with pytest.raises(UnusableError, match=f"^{re.escape(message)}$"):
        load_case(*arguments)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ("flt[3]", "expected a dtype of torch such as float32, got flt"),
        ("float23[3]", "expected a dtype of torch such as float32, got float23"),
        ("[4, 6]", "the dtype is missing; write float32[4, 6]"),
        ("int64[4]", "only floating-point tensors are drawn, since which values of int64 are"),
        ("complex64[4]", "only floating-point tensors are drawn"),
        ("float32[4 6]", "expected package.module:function, or shapes such as"),
        ("float32[-1]", "expected package.module:function, or shapes such as"),
        ("float32[3] float32[4]", "expected package.module:function, or shapes such as"),
        ("float32", "expected package.module:function, or shapes such as"),
    ],
)
def test_what_is_wrong_with_shapes_is_said(inputs, message):
    with pytest.raises(UnusableError, match=f"^inputs {re.escape(repr(inputs))}: ") as raised:
        load_case("torch:exp", inputs)
    assert message in str(raised.value)


@pytest.mark.parametrize("inputs", ["float32[4,6],bfloat16[]", " float32[ 4 , 6 ] , bfloat16[ ], "])
def test_shapes(inputs):
    matrix, number = load_case("torch:mul", inputs).inputs
    assert (matrix.shape, matrix.dtype) == ((4, 6), torch.float32)
    assert (number.shape, number.dtype) == ((), torch.bfloat16)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(:", "at theirs.py:1: SyntaxError: invalid syntax"),
        ("\nimport nothing_of_this_name", "at theirs.py:2: ModuleNotFoundError: No module named"),
        ("1 / 0", "at theirs.py:1: ZeroDivisionError: division by zero"),
        ("import sys\nsys.exit('no GPU')", "at theirs.py:2: SystemExit: no GPU"),
        ("raise ValueError('a\\nb')", "at theirs.py:1: ValueError: a b"),
    ],
)
@pytest.mark.parametrize("name", ["theirs.py", "theirs"])
def test_a_file_that_fails_is_one_line_with_its_place(folder, name, source, message):
    (folder / "theirs.py").write_text(source)
    with pytest.raises(UnusableError) as raised:
        load_case(f"{name}:op", "float32[3]")
    assert str(raised.value).startswith(f"{name!r} fails {message}")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ops.py:op", "ops.py:broken_inputs"], r"fails at ops.py:\d+: OSError: no data$"),
        (["ops.py:broken_case"], r"fails at ops.py:\d+: TypeError: inputs: expected a tuple"),
    ],
)
def test_a_function_that_fails_is_one_line_with_its_place(arguments, message):
    with pytest.raises(UnusableError, match=message):
        load_case(*arguments)


def test_no_tuple_is_refused():
    with pytest.raises(TypeError, match=r"got Tensor; write \(x,\)"):
        load_case("ops.py:op", "ops.py:no_tuple")


def test_another_op_and_another_reference_for_a_case():
    case = load_case("torch:square", "ops.py:case")
    assert case.op is torch.square
    assert case.reference is torch.square
    assert load_case("ops.py:case", None, "torch:exp").reference is torch.exp


def test_a_file_imports_its_neighbours(folder):
    (folder / "inner").mkdir()
    (folder / "inner" / "neighbour_of_ops.py").write_text("from torch import square")
    (folder / "inner" / "theirs.py").write_text("from neighbour_of_ops import square as op")
    assert load_case("inner/theirs.py:op", "float32[3]").op is torch.square
