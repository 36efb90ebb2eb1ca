"""The same call over and over: what its results have in common says what is wrong with them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from torch import Tensor

from gradproof.passes import Pass
from gradproof.report import Finding
from gradproof.subject import Subject, nearly_equal, output_name
from gradproof.tensors import largest, number, same_bits

RUNS_ON_CPU = 3  # enough for state; the interpreter has no races to show
RUNS_ON_GPU = 20
GROSS = 1e-3  # of the largest entry: no order of a short sum moves as much
GROSS_IF_LONG = 1e-2  # nor of a long one, whose terms may cancel


def repeated(subject: Subject, situation: str = "", gross: float = GROSS) -> Iterator[Finding]:
    """What differs between equal calls, bit for bit, and how; gross beyond so much of the largest.

    Raises OpError.
    """
    # The subject's own run comes first: on a fresh shape it is the first there ever was.
    passes = [subject.base, *(subject.run(subject.dy) for _ in range(runs(subject) - 1))]
    return _differences([_named(subject, done) for done in passes], situation, gross)


def runs(subject: Subject) -> int:
    return RUNS_ON_GPU if subject.cuda else RUNS_ON_CPU


def _named(subject: Subject, done: Pass) -> dict[str, Tensor]:
    named = {output_name(i, len(done.outputs)): y for i, y in enumerate(done.outputs)}
    gradients = zip(subject.gradient_names, done.gradients, strict=True)
    return named | {name: g for name, g in gradients if g is not None}


def _differences(
    results: Sequence[dict[str, Tensor]], situation: str, gross: float
) -> Iterator[Finding]:
    for name in results[0]:
        values = [r[name] for r in results if name in r]
        if all(same_bits(values[0], v) for v in values[1:]):
            continue
        spread = max(largest(v.double() - values[-1].double()) for v in values)
        relative = spread / (largest(values[-1]) or 1.0)
        rest = values[1:]
        said = (
            f"{situation}{name} varies by {number(spread)}, {number(relative)} of its largest entry"
        )
        if _grows(values):
            yield Finding(
                "accumulates-across-calls",
                f"{situation}{name} grows by the same amount with each call: {_ladder(values)}",
                about=name,
            )
        elif _first_is_odd(values[0], rest):
            yield Finding(
                "first-call-differs", said, "from the second call on it is the same", name
            )
        else:
            distinct = _distinct(values)
            yield Finding(
                "not-deterministic",
                f"{said}, {distinct} different results in {len(values)} runs",
                about=name,
                gross=relative > gross,
            )


def _first_is_odd(first: Tensor, rest: Sequence[Tensor]) -> bool:
    """Whether all but the first agree; where atomics move their last bits, the first is far off."""
    if all(same_bits(rest[0], v) for v in rest[1:]):
        return True
    scale = largest(rest[0])
    agree = all(nearly_equal(rest[0], v, scale, 4096) for v in rest[1:])
    return agree and not nearly_equal(rest[0], first, scale, 4096)


def _grows(values: Sequence[Tensor]) -> bool:
    steps = [(b.double() - a.double()) for a, b in itertools.pairwise(values)]
    scale = largest(steps[0])
    return scale > 1e-3 * largest(values[-1]) and all(
        nearly_equal(s.float(), steps[0].float(), largest(values[-1]), 64) for s in steps[1:]
    )


def _ladder(values: Sequence[Tensor]) -> str:
    place = int(values[-1].abs().flatten().argmax())
    return ", ".join(number(float(v.flatten()[place])) for v in values)


def _distinct(values: Sequence[Tensor]) -> int:
    kinds: list[Tensor] = []
    for value in values:
        if not any(same_bits(value, k) for k in kinds):
            kinds.append(value)
    return len(kinds)
