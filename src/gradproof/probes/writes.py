"""Does the op leave alone what it was handed?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from gradproof.passes import backward, forward, leaves
from gradproof.probe import Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.subject import Subject, nearly_equal
from gradproof.tensors import duplicate, is_float, largest, number, same_bits


def writes(subject: Subject) -> Iterator[Remark]:
    mine = leaves(subject.inputs, subject.wrt)
    before = {subject.names[i]: duplicate(x) for i, x in enumerate(mine) if isinstance(x, Tensor)}
    now = {subject.names[i]: x for i, x in enumerate(mine) if isinstance(x, Tensor)}
    saved: list[Tensor] = []

    def remember(tensor: Tensor) -> Tensor:
        saved.append(tensor)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(remember, lambda tensor: tensor):
        outputs = forward(subject.op, mine)
    yield from _changed("input-overwritten", before, now, "the forward")
    after_forward = {name: duplicate(t) for name, t in now.items()}
    outputs_before = [duplicate(y) for y in outputs]
    saved_before = [duplicate(t) for t in saved]
    dy = [duplicate(d) for d in subject.dy]
    backward(outputs, [mine[i] for i in subject.wrt], dy, copy_dy=False)
    yield from _changed("input-overwritten", after_forward, now, "the backward")
    handed = {"dy" if len(dy) == 1 else f"dy{i}": d for i, d in enumerate(dy)}
    original = dict(zip(handed, subject.dy, strict=True))
    clobbered = list(_changed("dy-overwritten", original, handed, "the backward"))
    if clobbered:
        clobbered = [_with_sibling(subject, finding) for finding in clobbered]
    yield from clobbered
    inputs = {t.data_ptr() for t in now.values()}
    for a, b in zip(saved_before, saved, strict=True):
        if b.data_ptr() not in inputs and not same_bits(a, b):
            said = f"a saved tensor, {list(b.shape)}, is changed by the backward"
            yield Finding("saved-overwritten", f"{said}, by up to {_change(a, b)}")
            break
    for a, b in zip(outputs_before, outputs, strict=True):
        if not same_bits(a, b):
            yield Finding(
                "saved-overwritten",
                f"the output is changed by the backward, by up to {_change(a, b)}",
            )
            break
    yield Tried("inputs, outputs, dy and saved tensors keep their bits")


def _changed(
    trap: str, before: dict[str, Tensor], now: dict[str, Tensor], when: str
) -> Iterator[Finding]:
    for name, tensor in now.items():
        if not same_bits(before[name], tensor):
            places = int((before[name] != tensor).sum())
            said = f"{name} is changed by {when}, at {places} of {tensor.numel()} places"
            if is_float(tensor):
                said += f", by up to {_change(before[name], tensor)}"
            yield Finding(trap, said, about=name)


def _change(a: Tensor, b: Tensor) -> str:
    return number(largest(a.double() - b.double()))


def _with_sibling(subject: Subject, finding: Finding) -> Finding:
    """What the damage does: y + z, where z is another leaf whose gradient is dy itself."""
    mine = leaves(subject.inputs, subject.wrt)
    y = forward(subject.op, mine)[0]
    z = torch.zeros_like(y).requires_grad_()
    dy = duplicate(subject.dy[0])
    for total in (y + z, z + y):
        _, dz = torch.autograd.grad(
            total, (mine[subject.wrt[0]], z), dy.clone(), retain_graph=True, allow_unused=True
        )
        if dz is not None and not nearly_equal(dz, dy, largest(dy), 1):
            return replace(
                finding, beside=f"in y + z, dz should be dy and is off by {_change(dz, dy)}"
            )
    return finding


WRITES = Probe("writes", "Does the op leave alone what it was handed?", writes)
