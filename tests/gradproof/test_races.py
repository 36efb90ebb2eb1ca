"""A race is named as one, at whichever size and in whichever probe it bites."""

import random

import pytest
import torch

from gradproof import Case, Finding, prove
from gradproof.probe import Probe
from gradproof.probes import PROBES
from gradproof.prove import Prover
from gradproof.subject import Subject

X = torch.linspace(-2, 2, 96)
W = torch.tensor(1.5)


def scale(x, w):
    return w * x


@pytest.fixture
def gpu(monkeypatch):
    """Tensors stay on the CPU and are proved as on a GPU, where programs overlap."""
    monkeypatch.setattr(Subject, "cuda", True)


@pytest.fixture
def scaled(scaling):
    """w·x whose dw misses the contributions that `lost(dy)` names."""
    return lambda lost: scaling(lambda x, dy: (x * dy * ~lost(dy)).sum())


def none(dy):
    return torch.zeros_like(dy, dtype=torch.bool)


def some(dy):
    """Another eighth each time; gradproof seeds torch's generators, a race heeds no seed."""
    start = random.Random().randrange(dy.numel())
    return (torch.arange(dy.numel()) + start).remainder(dy.numel()).view(dy.shape) < dy.numel() / 8


def test_one_that_needs_many_programs_is_no_size_limit(scaled):
    report = prove(scaled(lambda dy: some(dy) if dy.numel() > 2000 else none(dy)), (X, W), scale)
    assert report.traps == ("not-deterministic",), str(report)
    assert report.seen_by == ("sizes", "precision")[: len(report.seen_by)]


def test_one_that_bites_at_the_first_call_of_a_size_is_no_first_call(scaled, gpu):
    seen = set()

    def lost(dy):
        first = dy.shape not in seen
        seen.add(dy.shape)
        return some(dy) if first or dy.numel() > 2000 else none(dy)

    report = prove(scaled(lost), (X, W), scale)
    assert report.traps == ("not-deterministic",), str(report)
    assert report.seen_by == ("determinism",)


@pytest.mark.parametrize("call", [50, 60, 75, 100])
def test_one_that_bites_once_is_nothing_else(scaled, gpu, call):
    calls = []

    def lost(dy):
        calls.append(dy)
        return some(dy) if len(calls) == call else none(dy)

    report = prove(scaled(lost), (X, W), scale)
    assert len(calls) > call
    assert set(report.traps) <= {"not-deterministic"}, str(report)


def test_one_that_looked_like_memory_nobody_wrote_is_the_reason_why_others_are_skipped(gpu):
    def run(subject):
        if not asked:
            yield Finding("uninitialised-memory", "dw changes with what fresh memory held")
        asked.append(subject)

    asked = []
    prover = Prover(Subject.of(Case(scale, (X, W), scale)))
    result = prover.run(Probe("poison", "", run))
    assert [f.trap for f in result.findings] == ["uninitialised-memory", "not-deterministic"]
    assert prover.run(PROBES["values"]).skipped == "the same call gives different results"


def test_what_one_call_leaves_to_the_next_is_no_race(scaling, gpu):
    sums = {}

    def dw(x, dy):
        return sums.setdefault(x.shape, torch.zeros(())).add_((x * dy).sum())

    report = prove(scaling(dw), (X, W), scale)
    assert report.traps == ("accumulates-across-calls",), str(report)


def test_a_first_call_that_differs_on_every_shape_is_no_race(scaling, gpu):
    seen = set()

    def dw(x, dy):
        trials = 1 if x.shape in seen else 3
        seen.add(x.shape)
        return trials * (x * dy).sum()

    report = prove(scaling(dw), (X, W), scale)
    assert report.traps == ("first-call-differs",), str(report)


@pytest.mark.parametrize("op", [torch.nn.functional.gelu, torch.nn.functional.mse_loss])
def test_what_is_right_passes_as_on_a_gpu(gpu, op):
    inputs = (X.view(6, 16), X.view(6, 16).flip(0))
    inputs = inputs[: 2 if op is torch.nn.functional.mse_loss else 1]
    report = prove(op, inputs, op)
    assert report.ok, str(report)


def test_without_a_race_a_size_limit_is_one(scaled):
    report = prove(scaled(lambda dy: dy.abs() * (dy.numel() > 2000) > 0.5), (X, W), scale)
    assert "size-limit" in report.traps, str(report)
