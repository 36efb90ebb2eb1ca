"""What a report says depends on work counted, never on how fast the machine is."""

import cProfile
import time

import pytest
import torch
import triton
import triton.language as tl

from gradproof import Case, prove
from gradproof.subject import Subject
from gradproof.work import MOST_CALLS, Climb, counted


class Limited(torch.autograd.Function):
    """x², with a gradient that is wrong beyond five hundred elements."""

    wait = 0.0

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        until = time.process_time() + Limited.wait
        while time.process_time() < until:
            pass
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return (2 if x.numel() < 500 else 3) * x * dy


def test_a_slow_machine_prints_the_same_report(monkeypatch):
    def report():
        return str(prove(Limited.apply, (x,), reference=torch.square, probes=probes))

    x, probes = torch.linspace(-2, 2, 7), ["values", "sizes", "precision"]
    fast = report()
    monkeypatch.setattr(Limited, "wait", 0.02)
    assert report() == fast
    assert "size-limit" in fast
    assert "right at 1, 3, 7, 17, 48, 64 and 1 more size" in fast


def nothing():
    pass


def call(times):
    for _ in range(times):
        nothing()


def test_calls_are_counted_exactly_and_again_the_same():
    assert {counted(lambda: call(100))[0] for _ in range(3)} == {102}


@triton.jit
def double(x_ptr, y_ptr):
    tl.store(y_ptr, 2 * tl.load(x_ptr))


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU has no limit, so nothing is counted")
def test_a_kernel_counts_alike_in_a_long_file_and_in_a_short_one(monkeypatch):
    def launch():
        double[(3,)](x, y)

    x, y = torch.ones(1), torch.empty(1)
    launch()  # the first call has more to do
    short, _ = counted(launch)
    for i in range(1000):
        monkeypatch.setitem(globals(), f"unused_{i}", i)
    assert counted(launch)[0] == short > 100


def test_under_another_profiler_nothing_is_counted_and_nothing_breaks():
    profiler = cProfile.Profile()
    profiler.enable()
    try:
        assert counted(lambda: 5) == (float("inf"), 5)
    finally:
        profiler.disable()


def climb_of(calls_for_each_element):
    def op(x):
        call(x.numel() * calls_for_each_element)
        return x * x

    subject = Subject.of(Case(op, (torch.randn(100),), torch.square))
    return Climb.of(subject, lambda s: s.base)


def test_a_climb_ends_where_the_calls_would_be_too_many():
    climb = climb_of(20)
    enough = MOST_CALLS // 20
    assert climb.allows(enough // 2)
    assert not climb.allows(enough * 2)


def test_what_costs_the_same_at_any_size_is_climbed_to_the_top():
    climb = climb_of(0)
    climb, _ = climb.after(1000, lambda: call(10))
    assert climb.allows(2**21)


def test_elements_count_as_well():
    x = torch.ones(1000, 1000)
    assert counted(lambda: x.exp())[0] == counted(lambda: x[:1, :1].exp())[0] + 1000 == 1006


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU has no limit, so nothing is counted")
@pytest.mark.parametrize("reference", [None, lambda x: (x[:, None] * x).sum(1)])
def test_a_climb_ends_where_tensors_in_between_would_be_too_large(reference):
    made = []

    def op(x):
        made.append(x.numel() ** 2)
        return (x[:, None] * x).sum(1)

    report = prove(op, (torch.linspace(-2, 2, 7),), reference, probes=["sizes"])
    assert report.ok, str(report)
    assert 10**5 < sum(made) < 10**9


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU has no limit, so nothing is counted")
def test_a_climb_of_an_op_that_is_wrong_everywhere_ends_as_well():
    class Dear(torch.autograd.Function):
        most = 0

        @staticmethod
        def forward(ctx, x):
            call(20 * x.numel())
            Dear.most = max(Dear.most, x.numel())
            return x * x

        @staticmethod
        def backward(ctx, dy):
            return dy

    prove(Dear.apply, (torch.linspace(-2, 2, 100),), torch.square, probes=["sizes"])
    assert 1025 <= Dear.most <= 4099
