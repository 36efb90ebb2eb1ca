import pytest

from captures.honesty import dishonest_prints, unguarded_errors
from captures.script import read_script


def judged(sandbox, rule, code: str, tags: str = "") -> list[str]:
    sandbox.example("a/one", "# %% one" + tags + "\n" + code + "\n")
    return [str(fault) for fault in rule(read_script(sandbox.project, "a/one"))]


@pytest.mark.parametrize(
    "code",
    [
        "print('the gradient is 6')",
        "print('equal')",
        "print('sum:', 0.5)",
        "print(f'sum: {0.5:.3f}')",
        "print(6)",
        "print(-6.0)",
        "print('6' + '.0')",
        "print('a ' 'b')",
        "print('%d' % 6)",
        "print('sums', 0.5, sep='  ')",
        "for _ in range(2):\n    print('same')",
        "def f():\n    print('passed')",
        "try:\n    f()\nexcept E:\n    print('RuntimeError: no grad')\nelse:\n    raise E",
        "print('head:\\nsum 0.5')",
        "print(9**9**9)",
        "print('a' * (1 << 40))",
    ],
)
def test_a_literal_that_poses_as_a_result_is_named(sandbox, code: str) -> None:
    (fault,) = judged(sandbox, dishonest_prints, code)
    line = 2 + code[: code.index("print")].count("\n")
    assert fault.startswith(f"examples/a/one.py:{line}: prints the literal")


@pytest.mark.parametrize(
    "code",
    [
        "print()",
        "print('')",
        "print('in bf16:')",
        "print('# sums')",
        "print('== sums ==')",
        "print('-' * 40)",
        "print('dtype   sum   error')",
        'print(f\'{"dtype":8} {"sum":>8}\')',
        "print('| dtype | sum |')",
        "print(f'sum: {x}')",
        "print('sum:', x)",
        "print(x.grad)",
        "print('equal' if a == b else 'different')",
        "if a == b:\n    print('equal')\nelse:\n    print('different')",
        "print('-' * n)",
        "print(1 / 0)",
        "print('%(a)s' % {'b': 1})",
        "print('%(a)s' % ())",
        "print(*x)",
    ],
)
def test_headings_and_results_pass(sandbox, code: str) -> None:
    assert judged(sandbox, dishonest_prints, code) == []


def test_measured_cells_may_name_what_they_do(sandbox) -> None:
    assert judged(sandbox, dishonest_prints, "print('warm')", ' tags=["measured"]') == []


GUARDED = """
try:
    f()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("no error")
"""


def test_an_expected_error_must_be_raised(sandbox) -> None:
    assert judged(sandbox, unguarded_errors, GUARDED.strip()) == []
    (fault,) = judged(sandbox, unguarded_errors, GUARDED.partition("else")[0].strip())
    assert fault.startswith("examples/a/one.py:2: the `try` in cell `one` prints an error")
    group = GUARDED.replace("except", "except*").partition("else")[0]
    assert len(judged(sandbox, unguarded_errors, group.strip())) == 1
    weak = GUARDED.replace('raise AssertionError("no error")', "print(x)")
    assert len(judged(sandbox, unguarded_errors, weak.strip())) == 1


def test_a_try_that_prints_nothing_is_free(sandbox) -> None:
    code = "try:\n    import numpy\nexcept ImportError:\n    numpy = None"
    assert judged(sandbox, unguarded_errors, code) == []
