"""The op under proof, as the probes see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, wraps
from typing import Any, TypeVar, TypeVarTuple

import torch
from torch import Tensor

from gradproof.case import Case, op_name, with_parameters_as_inputs
from gradproof.finite_differences import FiniteDifferences
from gradproof.oracle import Oracle
from gradproof.passes import OpError, Pass, backward, differentiate, draw_like, forward, leaves
from gradproof.reference import Reference
from gradproof.state import State, changed
from gradproof.tensors import HALF, describe, is_float, largest, same_bits

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


def found_once(find: Callable[[Subject, *Ts], T]) -> Callable[[Subject, *Ts], T]:
    """What `find` finds out about a subject is kept with it, for every probe that asks."""

    @wraps(find)
    def recall(subject: Subject, *about: *Ts) -> T:
        key = (find, *about)
        if key not in subject.found:
            subject.found[key] = find(subject, *about)
        found: T = subject.found[key]
        return found

    return recall


@dataclass(frozen=True)
class Subject:
    """One op with one set of inputs and what is known about them.

    wrt: positions of the inputs that get a gradient. names: of all inputs.
    oracle: None where nothing can be said about values. draw_dy: makes dy for given outputs.
    state: with which each call of the op and of a reference begins. found: see `found_once`.
    """

    op: Callable[..., Any]
    inputs: tuple[Any, ...]
    wrt: tuple[int, ...]
    names: tuple[str, ...]
    title: str
    oracle: Oracle | None
    draw_dy: Callable[[Sequence[Tensor]], tuple[Tensor, ...]] = draw_like
    state: State = field(default=State(), repr=False)
    found: dict[Any, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @classmethod
    def of(cls, case: Case) -> Subject:
        title = op_name(case.op)
        state = State.of(case.op, case.reference, *case.inputs)
        case, names = with_parameters_as_inputs(case)
        floats = [i for i, x in enumerate(case.inputs) if is_float(x)]
        asked = [i for i in floats if case.inputs[i].requires_grad]
        inputs = tuple(_contiguous_copy(x) for x in case.inputs)
        op = state.before(case.op)
        with state.kept():
            oracle = _oracle(op, case.reference, inputs, state)
        return cls(op, inputs, tuple(asked or floats), names, title, oracle, state=state)

    @property
    def reference(self) -> Reference | None:
        return self.oracle if isinstance(self.oracle, Reference) else None

    @property
    def description(self) -> str:
        return f"{self.title}({self.described(self.inputs)})"

    def described(self, inputs: Sequence[Any]) -> str:
        """These inputs as arguments of the op: `x: float32[4, 64], eps: 1e-06`."""
        return ", ".join(
            f"{name}: {describe(x)}" for name, x in zip(self.names, inputs, strict=False)
        )

    @property
    def cuda(self) -> bool:
        return any(isinstance(x, Tensor) and x.is_cuda for x in self.inputs)

    @property
    def gradient_names(self) -> tuple[str, ...]:
        return tuple(gradient_name(self.names[i]) for i in self.wrt)

    @cached_property
    def base(self) -> Pass:
        """The op on the values given, everything contiguous, dy random."""
        mine = leaves(self.inputs, self.wrt)
        outputs = forward(self.op, mine)
        gradients = backward(outputs, [mine[i] for i in self.wrt], self.draw_dy(outputs))
        return Pass(tuple(y.detach() for y in outputs), gradients)

    @cached_property
    def dy(self) -> tuple[Tensor, ...]:
        return self.draw_dy(self.base.outputs)

    @cached_property
    def random(self) -> bool:
        """Whether the op draws random numbers: another seed gives another output."""
        op = changed(self.op, self.state.reseeded(2).before)
        outputs = forward(op, leaves(self.inputs, self.wrt), seed=2)
        return not all(map(same_bits, outputs, self.base.outputs))

    @property
    def scales(self) -> tuple[float, ...]:
        """Largest entry of each gradient on the inputs as given: what rounding is measured by."""
        return tuple(0.0 if g is None else largest(g) for g in self.base.gradients)

    def run(self, dy: Sequence[Tensor], inputs: Sequence[Any] | None = None) -> Pass:
        """One forward and backward over copies, with this dy."""
        return differentiate(self.op, self.inputs if inputs is None else inputs, self.wrt, dy)

    def at(self, inputs: Sequence[Any]) -> Subject:
        """The same op on other inputs."""
        return replace(self, inputs=tuple(inputs))

    def in_dtype(self, dtype: torch.dtype) -> Subject:
        """Every floating input in `dtype`; the same subject, with its one run, for every probe."""
        if all(x.dtype == dtype for x in self.inputs if is_float(x)):
            return self
        return _in_dtype(self, dtype)

    @cached_property
    def trial_devices(self) -> tuple[str, ...]:
        """Where to ask the reference whether it takes other sizes; empty without a reference.

        First on the meta device, which checks shapes and touches no memory (some of torch's own CPU
        kernels read out of bounds when sizes disagree); then, where inputs are indices, on the CPU:
        a bad one raises there instead of killing the device.
        """
        if self.reference is None:
            return ()
        tensors = [x for x in self.inputs if isinstance(x, Tensor)]
        usable = tuple(d for d in ("meta", "cpu") if self.reference_runs_on(d))
        if usable[:1] == ("meta",) and all(map(is_float, tensors)):
            return ("meta",)
        return usable or (tensors[0].device.type,)

    def reference_runs_on(self, device: str) -> bool:
        assert self.reference is not None
        inputs = [
            x.double().to(device) if is_float(x) else x.to(device) if isinstance(x, Tensor) else x
            for x in self.inputs
        ]
        try:
            forward(self.reference.function, inputs)
        except (OpError, TypeError):
            return False
        return True

    @property
    def half(self) -> bool:
        return any(is_float(x) and x.dtype in HALF for x in self.inputs)


@found_once
def _in_dtype(subject: Subject, dtype: torch.dtype) -> Subject:
    return subject.at([x.to(dtype) if is_float(x) else x for x in subject.inputs])


def _contiguous_copy(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.detach().clone(memory_format=torch.contiguous_format)


def gradient_name(name: str) -> str:
    return f"d{name}" if name.isidentifier() else f"the gradient of {name}"


def _oracle(
    op: Callable[..., Any],
    reference: Callable[..., Any] | None,
    inputs: tuple[Any, ...],
    state: State,
) -> Oracle | None:
    if reference is None:
        return FiniteDifferences.of(op, inputs)
    return Reference(state.before(reference))


def output_name(index: int, how_many: int) -> str:
    return "y" if how_many == 1 else f"y{index}"


def nearly_equal(a: Tensor, b: Tensor, scale: float, length: int) -> bool:
    """Equal up to the rounding of two honest runs in the coarser dtype of the two."""
    return a.shape == b.shape and not bool(apart(a, b, scale, length).any())


def apart(a: Tensor, b: Tensor, scale: float, length: int) -> Tensor:
    """Where two tensors of one shape differ by more than that."""
    eps = max(torch.finfo(t.dtype).eps for t in (a, b))
    slack = 8 * eps * max(1.0, min(length**0.5, 64.0)) if a.dtype not in HALF else 8 * eps
    x, y = a.detach().double(), b.detach().double()
    same = (x == y) | (torch.isnan(x) & torch.isnan(y))
    return ~(same | ((x - y).abs() <= slack * max(scale, largest(b))))
