"""Does backward keep its contract: number, order, shape, dtype, for each subset of inputs?"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from gradproof.case import argument_names
from gradproof.functions import Returned, function_nodes, recorded_backwards
from gradproof.passes import OpError, Pass, backward, draw_like, forward, leaves
from gradproof.probe import Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.subject import Subject, gradient_name, nearly_equal
from gradproof.tensors import is_float, listed, number, short

MOST_SUBSETS = 14


def contract(subject: Subject) -> Iterator[Remark]:
    mine = leaves(subject.inputs, subject.wrt)
    try:
        outputs = forward(subject.op, mine)
    except OpError as raised:
        yield Finding("forward-raises", raised.located)
        return
    with recorded_backwards(function_nodes(outputs)) as returned:
        try:
            backward(outputs, [mine[i] for i in subject.wrt], draw_like(outputs))
        except OpError as raised:
            yield _raised(raised, returned)
            return
    for one in returned:
        yield from _returned(one, subject)
    yield Tried("number, shape and dtype of what backward returns")
    if len(subject.wrt) > 1:
        yield from _subsets(subject)


def _raised(raised: OpError, returned: Sequence[Returned]) -> Finding:
    said = str(raised)
    if "incorrect number of gradients" in said:
        return Finding("wrong-number-of-gradients", f"autograd says: {said}")
    if "invalid gradient at index" in said or "returned an invalid gradient" in said:
        shapes = [
            f"place {place}: {list(value.shape)} for an input of {list(shape)}"
            for one in returned
            for place, value, shape, _ in one.destinations()
            if isinstance(value, Tensor) and value.shape != shape
        ]
        return Finding("wrong-gradient-shape", "; ".join(shapes) or f"autograd says: {said}")
    return Finding("backward-raises", raised.located)


def _returned(one: Returned, subject: Subject) -> Iterator[Remark]:
    wanted = {place for place, *_ in one.destinations()}
    argument = _argument_names(one)
    for place, value, shape, dtype in one.destinations():
        name = gradient_name(argument(place))
        if value is None:
            continue  # whether it is missing or truly zero is a matter of values
        if value.shape != shape:
            said = f"{name} is returned as {list(value.shape)} for an input of {list(shape)}"
            yield Finding("unreduced-gradient", said, about=name)
        if torch.finfo(value.dtype).eps > torch.finfo(dtype).eps:
            said = f"{name} is returned in {short(value.dtype)} for an input in {short(dtype)}"
            yield Finding("gradient-dtype", said, about=name)
    if len(one.values) != len(subject.inputs):
        return
    dropped = [
        argument(place)
        for place, value in enumerate(one.values)
        if value is not None and place not in wanted and not is_float(subject.inputs[place])
    ]
    if dropped:
        said = f"{listed(dropped)} receives a gradient, which autograd drops"
        yield Finding("gradient-for-integer", said)


def _argument_names(one: Returned) -> Any:
    names = argument_names(getattr(one.function, "apply"), len(one.values))  # noqa: B009
    return lambda place: names[place] if place < len(names) else f"argument {place}"


def _subsets(subject: Subject) -> Iterator[Remark]:
    """Only some inputs need a gradient; those must be as they are when all do."""
    full = dict(zip(subject.wrt, subject.base.gradients, strict=True))
    tried = 0
    sizes = range(1, len(subject.wrt))
    proper = itertools.chain.from_iterable(itertools.combinations(subject.wrt, k) for k in sizes)
    for subset in itertools.islice(proper, MOST_SUBSETS):
        tried += 1
        names = listed([subject.names[i] for i in subset])
        try:
            done = _with_only(subject, subset)
        except OpError as raised:
            yield Finding(
                "ignores-needs-input-grad", f"with a gradient for {names} alone: {raised}"
            )
            return
        for i, g in zip(subset, done.gradients, strict=True):
            want = full[i]
            if (g is None) != (want is None) or (
                g is not None and want is not None and not _same(subject, i, g, want)
            ):
                name = gradient_name(subject.names[i])
                said = f"with a gradient for {names} alone, {name} is {_kind(g)}"
                beside = f"with a gradient for every input it is {_kind(want)}"
                yield Finding("ignores-needs-input-grad", said, beside)
                return
    yield Tried(f"{tried} subsets of requires_grad")


def _kind(gradient: Tensor | None) -> str:
    if gradient is None:
        return "None"
    return f"of norm {number(float(gradient.double().norm()))}"


def _with_only(subject: Subject, subset: tuple[int, ...]) -> Pass:
    mine = leaves(subject.inputs, subset)
    outputs = forward(subject.op, mine)
    gradients = backward(outputs, [mine[i] for i in subset], subject.dy)
    return Pass(outputs, gradients)


def _same(subject: Subject, i: int, a: Tensor, b: Tensor) -> bool:
    scale = subject.scales[subject.wrt.index(i)]
    longest = max(x.numel() for x in subject.inputs if is_float(x))
    return nearly_equal(a, b, scale, longest)


CONTRACT = Probe("contract", "Does backward return what autograd asks for?", contract)
