"""Does the op work, or refuse clearly, under autocast, checkpoint, torch.func and vmap?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.utils.checkpoint
from torch import Tensor

from gradproof.judge import is_right
from gradproof.passes import (
    FailedCallError,
    NoGraphError,
    OpError,
    as_raised,
    backward,
    differentiate,
    forward,
    leaves,
)
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.subject import Subject, nearly_equal
from gradproof.tensors import is_float, largest, listed, number, short

Gradients = Sequence[Tensor | None]


def composition(subject: Subject) -> Iterator[Remark]:
    refused: dict[str, list[str]] = {}
    for name, trap, how in WAYS:
        for remark in _judged(subject, name, trap, how):
            if isinstance(remark, Refused):
                refused.setdefault(remark.why, []).append(remark.name)
            else:
                yield remark
    for why, names in refused.items():
        yield Note(f"{listed(names)} {'is' if len(names) == 1 else 'are'} refused ({why})")
    yield from _mixed(subject)


@dataclass(frozen=True)
class Refused:
    name: str
    why: str


def _judged(
    subject: Subject,
    name: str,
    trap: str,
    how: Callable[[Subject], Gradients],
) -> Iterator[Remark | Refused]:
    """Works, refuses, or is silently wrong: only the last is a trap."""
    coarse = name == "autocast"
    try:
        gradients = how(subject)
    except OpError as raised:
        if raised.stage == "backward" and coarse:
            yield Finding(trap, f"under {name} the forward runs and the backward raises {raised}")
        else:
            yield Refused(name, str(raised))
        return
    except NoGraphError:
        yield Finding(trap, f"under {name} the output has no grad_fn")
        return
    found = False
    for gradient, got, want, scale in zip(
        subject.gradient_names, gradients, subject.base.gradients, subject.scales, strict=True
    ):
        if (got is None) != (want is None):
            yield Finding(
                trap, f"under {name}, {gradient} is {'None' if got is None else 'not None'}"
            )
            found = True
        elif got is not None and want is not None and not _agrees(got, want, scale, coarse):
            off = number(largest(got.double() - want.double()))
            said = f"under {name}, {gradient} is off by {off} (its largest entry: {number(scale)})"
            yield Finding(trap, said, "without it, it is right", gradient)
            found = True
    if not found:
        yield Tried(name)


def _agrees(got: Tensor, want: Tensor, scale: float, coarse: bool) -> bool:
    if got.shape != want.shape or (coarse and got.dtype != want.dtype):
        return False
    if coarse:  # bf16 may be used inside: 2⁻⁸ a rounding, some roundings, and a sum of them
        return largest(got.double() - want.double()) <= 0.1 * scale and bool(
            (torch.isfinite(got) | ~torch.isfinite(want)).all()
        )
    return nearly_equal(got, want, scale, 4096)


def _autocast(subject: Subject) -> Gradients:
    """Forward under autocast, backward outside, as a training loop does."""
    kind = "cuda" if subject.cuda else "cpu"
    mine = leaves(subject.inputs, subject.wrt)
    with torch.autocast(kind, dtype=torch.bfloat16):
        outputs = forward(subject.op, mine)
    dy = [d.to(y.dtype) for y, d in zip(outputs, subject.dy, strict=True)]
    return backward(outputs, [mine[i] for i in subject.wrt], dy)


def _mixed(subject: Subject) -> Iterator[Remark]:
    """bf16 activations with fp32 parameters, as they meet under autocast."""
    floats = [i for i, x in enumerate(subject.inputs) if is_float(x)]
    if len(floats) < 2 or subject.reference is None or subject.half or not is_right(subject):
        return
    first = floats[0]
    narrow = subject.inputs[first].to(torch.bfloat16)
    inputs = [narrow if i == first else x for i, x in enumerate(subject.inputs)]
    try:
        mine = leaves(inputs, subject.wrt)
        outputs = forward(subject.op, mine)
        dy = _cast(subject.dy, outputs)
        gradients = backward(outputs, [mine[i] for i in subject.wrt], dy)
    except OpError as raised:
        if raised.stage == "backward":
            mixed = f"with {subject.names[first]} in bfloat16 and the rest in float32"
            yield Finding("wrong-with-mixed-dtypes", f"{mixed} the backward raises {raised}")
        else:
            yield Note(f"inputs of mixed dtypes are refused ({raised})")
        return
    except NoGraphError:
        return
    _, truth = subject.reference.exact(inputs, subject.wrt, dy)
    for i, name, g, t in zip(subject.wrt, subject.gradient_names, gradients, truth, strict=True):
        if g is None:
            continue
        if g.dtype != inputs[i].dtype or largest(g.double() - t) > 0.1 * largest(t):
            said = (
                f"with {subject.names[first]} in bfloat16 and the rest in float32, {name} comes in "
                f"{short(g.dtype)}, off by {number(largest(g.double() - t))}"
            )
            yield Finding("wrong-with-mixed-dtypes", said, "with one dtype it is right", name)
            return
    yield Tried("mixed dtypes")


def _cast(dy: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Tensor]:
    return [d.to(y.dtype) for y, d in zip(outputs, dy, strict=True)]


def _checkpoint(subject: Subject) -> Gradients:
    def op(*inputs: Any) -> Any:
        return torch.utils.checkpoint.checkpoint(subject.op, *inputs, use_reentrant=False)

    return differentiate(op, subject.inputs, subject.wrt, subject.dy).gradients


def _func(subject: Subject) -> Gradients:
    """torch.func.vjp, the way functorch differentiates."""
    mine = leaves(subject.inputs, ())
    wanted = [mine[i] for i in subject.wrt]

    def op(*differentiable: Any) -> Any:
        given = dict(zip(subject.wrt, differentiable, strict=True))
        outputs = forward(subject.op, [given.get(i, x) for i, x in enumerate(mine)])
        return tuple(outputs)

    try:
        outputs, pull, *_ = torch.func.vjp(op, *wanted)
        return pull(tuple(d.to(y.dtype) for y, d in zip(outputs, subject.dy, strict=True)))
    except FailedCallError:
        raise
    except Exception as error:
        raise as_raised("forward", error) from None


def _vmap(subject: Subject) -> Gradients:
    """vmap over a batch of three copies, of which the second is the op's own inputs."""
    mine = leaves(subject.inputs, subject.wrt)
    wanted = [mine[i] for i in subject.wrt]
    stacked = [torch.stack([x.detach() * 0.5, x, x.detach() * 2]) for x in wanted]

    def op(*differentiable: Any) -> Any:
        given = dict(zip(subject.wrt, differentiable, strict=True))
        result = subject.op(*(given.get(i, x) for i, x in enumerate(mine)))
        return result if isinstance(result, tuple | list) else (result,)

    try:
        outputs = [y[1] for y in torch.vmap(op)(*stacked) if is_float(y)]
    except Exception as error:
        raise as_raised("forward", error) from None
    return backward(outputs, wanted, subject.dy)


WAYS: tuple[tuple[str, str, Callable[[Subject], Gradients]], ...] = (
    ("autocast", "wrong-under-autocast", _autocast),
    ("checkpoint", "wrong-under-checkpoint", _checkpoint),
    ("func.vjp", "wrong-under-func", _func),
    ("vmap", "wrong-under-vmap", _vmap),
)

COMPOSITION = Probe(
    "composition", "Does it work, or refuse, under autocast, checkpoint, func, vmap?", composition
)
