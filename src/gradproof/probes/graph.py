"""Is the op one honest node: reached by apply, its tensors saved, freed and protected?"""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from gradproof.functions import forwards_called_directly, function_nodes
from gradproof.judge import is_right
from gradproof.passes import OpError, backward, forward, leaves
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.reference import Reference
from gradproof.report import Finding
from gradproof.subject import Subject, nearly_equal
from gradproof.tensors import draw, is_float, largest, listed, number
from gradproof.tolerance import allowed, compare


def graph(subject: Subject) -> Iterator[Remark]:
    mine = leaves(subject.inputs, subject.wrt)
    with forwards_called_directly() as direct:
        outputs = forward(subject.op, mine)
    bypassed = sorted({f.__name__ for f in direct})
    if not any(y.requires_grad for y in outputs):
        if bypassed:
            said = f"{listed(bypassed)}.forward was called without apply; the output has no grad_fn"
            yield Finding("forward-called-directly", said)
        else:
            names = listed([subject.names[i] for i in subject.wrt])
            yield Finding("no-grad-fn", f"{names} require a gradient and the output does not")
        return
    if bypassed:
        said = f"{listed(bypassed)}.forward was called without apply; the output's grad_fn is "
        yield Finding("forward-called-directly", said + f"{outputs[0].grad_fn.name()}")  # type: ignore[union-attr]
    yield Tried("grad_fn")
    yield from _protection(subject)
    yield from _release(subject)
    yield from _cycle(subject)
    yield from _second_call(subject)
    yield from _double_backward(subject)


def _weak(tensor: Tensor) -> Any:
    # Python's weakref dies with the Python object, which autograd may outlive.
    return torch._C._WeakTensorRef(tensor)  # type: ignore[attr-defined]


def _tensors_on_ctx(nodes: Sequence[Any]) -> list[str]:
    return [
        f"{type(node).__name__.removesuffix('Backward')}: ctx.{name}"
        for node in nodes
        for name, value in vars(node).items()
        if isinstance(value, Tensor) and value.numel() > 0
    ]


def _protection(subject: Subject) -> Iterator[Remark]:
    """Mutate an input or the output between the passes: it must be noticed, or not matter."""
    base = subject.base.gradients
    mutated = [*subject.wrt, *(-1 - k for k in range(len(subject.base.outputs)))]
    for which in mutated:
        mine = leaves(subject.inputs, subject.wrt)
        inputs = tuple(x * 1 if i in subject.wrt else x for i, x in enumerate(mine))
        outputs = forward(subject.op, inputs)
        victim = inputs[which] if which >= 0 else outputs[-1 - which]
        name = subject.names[which] if which >= 0 else "the output"
        with torch.no_grad():
            try:
                victim.mul_(-1.5).add_(0.5)
            except RuntimeError:
                continue
        try:
            after = backward(outputs, [mine[i] for i in subject.wrt], subject.dy)
        except OpError:
            continue
        changed = [
            gradient
            for gradient, a, b, scale in zip(
                subject.gradient_names, after, base, subject.scales, strict=True
            )
            if a is not None and b is not None and not nearly_equal(a, b, scale, 1)
        ]
        if changed:
            kept = _tensors_on_ctx(function_nodes(outputs))
            said = f"{name} changed in place after the forward: {listed(changed)} changes, no error"
            trap = "saved-on-ctx" if kept else "saved-unprotected"
            yield Finding(trap, said + (f" ({listed(kept)})" if kept else ""))
            return
    yield Tried("saved tensors are protected")


def _release(subject: Subject) -> Iterator[Remark]:
    """After backward, while the output is still held, nothing of the node's may be."""
    mine = leaves(subject.inputs, subject.wrt)
    inputs = tuple(x * 1 if i in subject.wrt else x for i, x in enumerate(mine))
    watched = {subject.names[i]: _weak(x) for i, x in enumerate(inputs) if is_float(x)}
    outputs = forward(subject.op, inputs)
    unsaved = [name for name, ref in watched.items() if ref.expired()]
    del inputs
    fixed = [subject.names[i] for i, x in enumerate(subject.inputs) if i not in subject.wrt]
    backward(outputs, [mine[i] for i in subject.wrt], subject.dy)
    nodes = function_nodes(outputs)
    kept = _tensors_on_ctx(nodes)
    # An output that is a view of its input keeps it alive, and rightly.
    alive = [
        name
        for name, ref in watched.items()
        if not ref.expired()
        and name not in (*unsaved, *fixed)
        and not any(y._is_view() for y in outputs)
    ]
    if kept:
        again = _second_backward_is_silent(mine, outputs, subject)
        more = "; a second backward without retain_graph runs on it without a word" if again else ""
        yield Finding("saved-on-ctx", f"{listed(kept)} is still held after backward{more}")
    elif alive and nodes:
        yield Finding("saved-unprotected", f"{listed(alive)} is still held after backward")
    else:
        yield Tried("and freed")


def _second_backward_is_silent(
    mine: Sequence[Any], outputs: Sequence[Tensor], subject: Subject
) -> bool:
    try:
        backward(outputs, [mine[i] for i in subject.wrt], subject.dy)
    except OpError:
        return False
    return True


def _cycle(subject: Subject) -> Iterator[Remark]:
    """Dropping the output must free it there and then, not at the next garbage collection."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        outputs = forward(subject.op, leaves(subject.inputs, subject.wrt))
        nodes = [weakref.ref(node) for node in function_nodes(outputs)]
        refs = [_weak(y) for y in outputs]
        del outputs
        alive = any(not r.expired() for r in refs) or any(n() is not None for n in nodes)
        if alive:
            gc.collect()
            if any(not r.expired() for r in refs) or any(n() is not None for n in nodes):
                yield Finding("saved-unprotected", "the output is held even after its last use")
            else:
                yield Finding(
                    "reference-cycle",
                    "the output dropped without backward is freed only by the garbage collector",
                )
            return
    finally:
        if enabled:
            gc.enable()
    yield Tried("no reference cycle")


def _second_call(subject: Subject) -> Iterator[Remark]:
    """Two forwards, then the backward of the first."""
    mine = leaves(subject.inputs, subject.wrt)
    outputs = forward(subject.op, mine)
    others = [x * 0.5 + 0.25 if i in subject.wrt else x for i, x in enumerate(subject.inputs)]
    try:
        forward(subject.op, leaves(others, subject.wrt))
    except OpError:
        return
    gradients = backward(outputs, [mine[i] for i in subject.wrt], subject.dy)
    for name, a, b, scale in zip(
        subject.gradient_names, gradients, subject.base.gradients, subject.scales, strict=True
    ):
        if a is not None and b is not None and not nearly_equal(a, b, scale, 1):
            difference = largest(a.double() - b.double())
            said = f"a second forward before the backward changes {name} by {number(difference)}"
            yield Finding("shared-state", said, "with no call between, it does not", name)
            return
    yield Tried("calls are independent")


def _double_backward(subject: Subject) -> Iterator[Remark]:
    """Second derivatives are right, or refused; a gradient without a graph is neither."""
    right = is_right(subject)
    for constant in (True, False):
        kind = "a constant dy" if constant else "a dy that requires a gradient"
        answer = _second_derivatives(subject, subject.op, constant)
        if isinstance(answer, OpError):
            yield Tried(f"double backward with {kind} is refused")
            continue
        if answer is not None and not right:
            continue  # the derivative of a wrong gradient is wrong, and no news
        if not isinstance(subject.oracle, Reference):
            if answer is None and constant and function_nodes(subject.base.outputs):
                yield Note("double backward gives no graph; without a reference that may be right")
            continue
        in64 = subject.in_dtype(torch.float64)
        truth = _second_derivatives(in64, subject.oracle.function, constant)
        if isinstance(truth, OpError) or truth is None:
            continue
        in32 = subject.in_dtype(torch.float32)
        narrow = _second_derivatives(in32, subject.oracle.function, constant)
        theirs = narrow if isinstance(narrow, dict) else {}
        significant = [name for name, t in truth.items() if largest(t) > 1e-6]
        if not significant:
            continue
        if answer is None or all(name not in answer for name in significant):
            said = f"with {kind} and create_graph=True the gradients come back without a graph; "
            missing = significant[0]
            amount = number(largest(truth[missing]))
            yield Finding(
                "double-backward-lost", said + f"the second derivative {missing} is up to {amount}"
            )
            return
        for name in significant:
            got = answer.get(name, torch.zeros_like(truth[name]))
            scale = largest(truth[name])
            expected = allowed(
                truth[name],
                got.dtype,
                got.numel() + truth[name].numel() * 64,
                scale,
                max(1e-4 * scale, largest(theirs.get(name, truth[name]) - truth[name])),
                scale,
            )
            if (mismatch := compare(got, expected)) is not None:
                yield Finding("double-backward-wrong", f"with {kind}, {name} is {mismatch}")
                return
        yield Tried(f"double backward with {kind} is right")


def _second_derivatives(
    subject: Subject, op: Any, constant: bool
) -> dict[str, Tensor] | OpError | None:
    """Gradients of Σ u·dx: by input and by dy. None: nothing to differentiate."""
    mine = leaves(subject.inputs, subject.wrt)
    try:
        outputs = forward(op, mine)
        dy = [draw(y.shape, y.dtype, y.device, 300 + i) for i, y in enumerate(outputs)]
        dy = [d if constant else d.requires_grad_() for d in dy]
        wrt = [mine[i] for i in subject.wrt]
        first = backward(outputs, wrt, dy, create_graph=True)
        live = [(k, g) for k, g in enumerate(first) if g is not None and g.requires_grad]
        if not live:
            return None
        weights = [draw(g.shape, g.dtype, g.device, 400 + k) for k, g in live]
        targets = wrt if constant else [*wrt, *dy]
        second = backward([g for _, g in live], targets, weights)
    except OpError as raised:
        return raised
    names = [f"by {subject.names[i]}" for i in subject.wrt] + ["by dy"] * len(dy)
    return {n: g for n, g in zip(names, second, strict=False) if g is not None}


GRAPH = Probe("graph", "Is the op one honest node of the graph?", graph)
