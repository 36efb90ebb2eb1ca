"""Does the op work, or refuse clearly, under torch.compile(fullgraph=True)?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import torch

from gradproof.passes import NoGraphError, OpError, differentiate
from gradproof.probe import Note, Probe, Remark, Tried
from gradproof.report import Finding
from gradproof.state import changed
from gradproof.subject import Subject, nearly_equal
from gradproof.tensors import largest, number


def compiled(subject: Subject) -> Iterator[Remark]:
    # Without a GPU the code generator would want a C++ compiler; tracing is what can go wrong.
    backend = "inductor" if subject.cuda else "aot_eager"
    op = changed(subject.op, partial(torch.compile, fullgraph=True, backend=backend))
    try:
        done = differentiate(op, subject.inputs, subject.wrt, subject.dy)
    except (OpError, NoGraphError) as raised:
        yield Note(f"torch.compile(fullgraph=True) is refused ({raised})")
        return
    for name, got, want, scale in zip(
        subject.gradient_names, done.gradients, subject.base.gradients, subject.scales, strict=True
    ):
        if got is None or want is None:
            if got is not want:
                yield Finding("wrong-under-compile", f"compiled, {name} is {got}", about=name)
        elif not nearly_equal(got, want, scale, 4096):
            off = number(largest(got.double() - want.double()))
            said = f"compiled, {name} is off by {off} (its largest entry: {number(scale)})"
            yield Finding("wrong-under-compile", said, "in eager mode it is right", name)
    yield Tried(f"fullgraph, {backend}")


COMPILED = Probe(
    "compile", "Does it work, or refuse, under torch.compile?", compiled, on_request=True
)
