"""What a script finds when its cells run: the same as under ``python script.py``."""

import threading

from captures.execute import execute
from captures.script import read_script


def said(sandbox, text: str) -> list[str]:
    sandbox.example("a/one", text)
    execution = execute(read_script(sandbox.project, "a/one"), sandbox.cpu, threading.Event())
    assert execution.failure is None, execution.failure
    return [output.text for output in execution.outputs]


def test_sources_can_be_inspected_across_cells(sandbox) -> None:
    shown = said(
        sandbox,
        """
        # %% define
        def decorated(f):
            return f


        @decorated
        def kernel(x):
            return x + 1  # why


        class Node:
            pass

        # %% inspect
        import inspect

        print(inspect.getsource(kernel), end="")
        print(inspect.getsource(Node), end="")
        print(inspect.getsourcelines(kernel)[1], kernel.__code__.co_firstlineno)
        """,
    )[1]
    assert shown == (
        "@decorated\ndef kernel(x):\n    return x + 1  # why\nclass Node:\n    pass\n6 6"
    )


def test_main_is_the_script(sandbox) -> None:
    (shown,) = said(
        sandbox,
        """
        # %% one
        import sys
        from pathlib import Path

        import __main__

        print(__name__, Path(__file__).name, len(sys.argv), Path(sys.path[0]).name)
        print(__main__.Path is Path)
        """,
    )
    assert shown == "__main__ one.py 1 a\nTrue"


def test_futures_hold_for_later_cells(sandbox) -> None:
    shown = said(
        sandbox,
        """
        # %% one
        from __future__ import annotations
        # %% two
        def f(x: missing): pass
        print(f.__annotations__)
        """,
    )[1]
    assert shown == "{'x': 'missing'}"


def test_first_party_modules_come_from_this_project(sandbox) -> None:
    sandbox.write("src/gradkernels/__init__.py", "where = 'sandbox'\n")
    text = "# %% one\nimport gradkernels\nprint(gradkernels.where)\n"
    assert said(sandbox, text) == ["sandbox"]


def test_triton_compiles_what_stands_in_a_cell(sandbox) -> None:
    shown = said(
        sandbox,
        """
        # %% define
        import torch
        import triton
        import triton.language as tl

        @triton.jit
        def double(x_ptr, n, BLOCK: tl.constexpr):
            i = tl.arange(0, BLOCK)
            tl.store(x_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n, other=0.0), mask=i < n)

        # %% launch
        x = torch.arange(3.0)
        double[(1,)](x, 3, BLOCK=4)
        print(x.tolist())
        """,
    )[1]
    assert shown == "[0.0, 2.0, 4.0]"
