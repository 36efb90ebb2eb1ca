"""A crash or a hang in the op is a finding, and the probes after it still run."""

import sys
import textwrap

import pytest

from gradproof import isolation
from gradproof.isolation import ProbeBrokeError, Worker
from gradproof.load import UnusableError
from gradproof.process import DiedError, TooLongError

OPS = """
    import ctypes, os, signal, sys, time
    import torch
    from gradproof import Case
    from gradproof.probe import Probe
    from gradproof.probes import PROBES

    def case(op):
        return Case(op, (torch.ones(3, 4) / 3,), torch.square)

    def on_strided_dy(act):
        class Square(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, dy):
                (x,) = ctx.saved_tensors
                if not dy.is_contiguous():
                    act()
                return 2 * x * dy

        return case(Square.apply)

    def at_once(act):
        def op(x):
            act()
            return x * x

        return case(op)

    def fault():
        ctypes.string_at(0)

    def endless():
        time.sleep(1000)

    def on_nothing(x):
        if x.numel() == 0:
            os.kill(os.getpid(), signal.SIGFPE)
        return torch.square(x)

    def dies_of_nothing(): return Case(on_nothing, (torch.ones(3, 4) / 3,), torch.square)
    def dead_reference(): return Case(torch.square, (torch.ones(3, 4) / 3,), on_nothing)
    def strided_fault(): return on_strided_dy(fault)
    def hangs(): return at_once(endless)

    def probe_that_raises(name, error):
        def run(subject):
            raise error
            yield

        PROBES[name] = Probe(name, "", run)

    def with_broken_probes():
        probe_that_raises("writes", KeyError("k"))
        probe_that_raises("graph", RuntimeError("CUDA error: an illegal memory access"))
        return case(torch.square)

    def leaves_while_loaded():
        os._exit(0)
"""


@pytest.fixture
def work(tmp_path, monkeypatch):
    """Makes a worker on a case of the file above."""
    (tmp_path / "ops.py").write_text(textwrap.dedent(OPS))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", list(sys.path))
    workers = []

    def worker(case, patience=isolation.PROBE_PATIENCE):
        workers.append(Worker(f"ops.py:{case}", patience=patience))
        return workers[-1]

    yield worker
    for each in workers:
        each.close()


@pytest.fixture
def starts(monkeypatch):
    """Counts the processes that were started."""
    started = []

    def process(*arguments, **more):
        started.append(arguments)
        return start(*arguments, **more)

    start = isolation.Process
    monkeypatch.setattr(isolation, "Process", process)
    return started


def line_of(statement):
    return 1 + next(
        n for n, line in enumerate(OPS.strip("\n").splitlines(), 1) if statement in line
    )


def findings(result):
    return [(f.trap, f.evidence) for f in result.findings]


def test_a_fault_is_reported_with_its_place_and_the_next_probe_runs(work, starts):
    worker = work("strided_fault")
    assert worker.run("writes").mark == "ok"
    assert findings(worker.run("layouts")) == [
        (
            "illegal-address",
            "the process died of SIGSEGV during the probe, when the op was called with "
            f"x: float32[3, 4], at ops.py:{line_of('string_at')}",
        )
    ]
    assert worker.run("composition").mark == "ok"
    assert len(starts) == 2


def test_a_crash_at_one_size_is_named_with_that_size(work):
    assert findings(work("dies_of_nothing").run("sizes")) == [
        (
            "crash",
            "the process died of SIGFPE during the probe, when the op was called with "
            f"x: float32[3, 0], at ops.py:{line_of('os.kill')}",
        )
    ]


def test_a_crash_of_the_reference_is_no_finding(work):
    result = work("dead_reference").run("sizes")
    assert not result.findings
    assert result.skipped.startswith(
        "the process died of SIGFPE during the probe, when the reference was called with input 0: "
        "float64[3, 0]"
    )


def test_patience_holds_from_the_first_call(work, starts):
    worker = work("hangs", patience=2)
    assert findings(worker.run("values")) == [
        (
            "hang",
            "no answer within 2 s in the op's first call, when the op was called with "
            f"x: float32[3, 4], at ops.py:{line_of('sleep')}",
        )
    ]
    assert worker.run("graph").skipped == "the op's first call does not come back"
    assert len(starts) == 1


def test_neither_gradproof_nor_a_lost_device_is_blamed_on_later_probes(work, starts):
    worker = work("with_broken_probes")
    message = r"^a mistake of gradproof, not of the op: KeyError: 'k' \(ops.py:\d+\)$"
    with pytest.raises(ProbeBrokeError, match=message):
        worker.run("writes")
    assert [f.trap for f in worker.run("graph").findings] == ["illegal-address"]
    assert len(starts) == 1
    assert worker.run("contract").mark == "ok"
    assert len(starts) == 2


def test_a_file_that_ends_its_process_is_no_finding(work):
    message = "'ops.py:leaves_while_loaded': the process exited with status 0 while it was loaded"
    with pytest.raises(UnusableError, match=message):
        work("leaves_while_loaded").run("values")


LOADED = {"loaded": True}
READY = {"description": "op()", "lost": False}
LOST = {"description": "op()", "lost": True}
RESULT = {"probe": "values", "findings": [], "tried": "it", "notes": [], "skipped": ""}


@pytest.fixture
def scripted(monkeypatch):
    """A worker whose processes answer, one after another, what the lists given say."""

    def worker(*scripts):
        left = list(scripts)

        class Scripted:
            def __init__(self, *_, **__):
                self.answers = left.pop(0)

            def receive(self, _):
                answer = self.answers.pop(0)
                if isinstance(answer, Exception):
                    raise answer
                return answer

            def send(self, _):
                pass

            def close(self):
                assert not self.answers

        monkeypatch.setattr(isolation, "Process", Scripted)
        return Worker("ops:op")

    return worker


@pytest.mark.parametrize(
    ("error", "trap", "evidence"),
    [
        (DiedError(-11, "f.py:1"), "illegal-address", "the process died of SIGSEGV {}, at f.py:1"),
        (DiedError(-6, ""), "crash", "the process died of SIGABRT {}"),
        (DiedError(0, ""), "crash", "the op called exit: the process exited with status 0 {}"),
        (TooLongError(3, "f.py:2"), "hang", "no answer within 3 s {}, at f.py:2"),
    ],
)
def test_how_it_ended_is_the_finding(scripted, error, trap, evidence):
    worker = scripted([LOADED, READY, error], [LOADED, error])
    assert findings(worker.run("values")) == [(trap, evidence.format("during the probe"))]
    assert findings(worker.run("values")) == [(trap, evidence.format("in the op's first call"))]


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ([LOADED, DiedError(-11, "")], "the op's first call ends its process"),
        ([LOADED, LOST, {"result": RESULT, "lost": True}], "the op's first call ends in a memory"),
    ],
)
def test_a_death_at_the_first_call_is_tried_once_more(scripted, script, reason):
    worker = scripted(list(script), list(script))
    assert not worker.run("values").skipped
    assert not worker.run("values").skipped
    assert worker.run("values").skipped.startswith(reason)


def test_deaths_in_probes_leave_hope(scripted):
    died = [LOADED, READY, DiedError(-11, "")]
    worker = scripted(*[list(died) for _ in range(5)])
    assert [worker.run("values").mark for _ in range(5)] == ["FAIL"] * 5


@pytest.mark.parametrize("script", [[{"unusable": "no op"}], [LOADED, {"unusable": "no op"}]])
def test_what_cannot_be_used_is_refused_once_for_all(scripted, script):
    worker = scripted(list(script))
    for _ in range(3):
        with pytest.raises(UnusableError, match="no op"):
            worker.run("values")


@pytest.mark.parametrize("patience", [0, -3, float("nan")])
def test_patience_is_a_time(patience):
    with pytest.raises(ValueError, match="patience: expected seconds, more than 0, got"):
        Worker("ops:op", patience=patience)
