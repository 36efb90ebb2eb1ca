"""For pytest: one test for each probe, each in a child process.

# tests/test_gelu.py
from gradproof import Case
from gradproof.testing import one_test_per_probe

def gelu_case():
    return Case(gelu, (torch.randn(6, 40),), reference=torch.nn.functional.gelu)

test_gelu = one_test_per_probe(gelu_case)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import Any

from gradproof.case import Case
from gradproof.isolation import PROBE_PATIENCE, Worker
from gradproof.load import UnusableError
from gradproof.prove import choose
from gradproof.report import Report


def one_test_per_probe(
    case: Callable[[], Case], probes: Iterable[str] | None = None, patience: float = PROBE_PATIENCE
) -> Any:
    """A parametrised test function that fails with the trap, the evidence and the mend.

    Args:
        case: a function of no arguments at the top level of its file; the child process imports
            that file again and calls it.
        probes: their names; by default all but those on request.
        patience: seconds for the op's first call, and for each probe.
    """
    import pytest

    if not inspect.isfunction(case) or "<" in case.__qualname__:
        raise TypeError(
            f"case: expected a function at the top level of a file, got {case!r}; "
            "the child process has to find it by name"
        )
    worker = Worker(f"{inspect.getfile(case)}:{case.__qualname__}", None, None, patience)

    @pytest.mark.parametrize("probe", [probe.name for probe in choose(probes)])
    def test(probe: str, request: pytest.FixtureRequest) -> None:
        request.node.parent.addfinalizer(worker.close)  # after the last test of the file
        try:
            result = worker.run(probe)
        except UnusableError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        finally:
            print(worker.printed.take(), end="")
        if result.findings:
            pytest.fail(str(Report(worker.description, (result,))), pytrace=False)
        if result.skipped:
            pytest.skip(result.skipped)

    return test
