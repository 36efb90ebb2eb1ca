"""One forward and one backward of a callable, on tensors of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from gradproof.frames import line_of_error, straight_from_torch
from gradproof.tensors import draw, duplicate, is_float, short

LONGEST_MESSAGE = 140


class FailedCallError(Exception):
    """What came out of the callable: `error`, in `stage` "forward" or "backward"."""

    def __init__(self, stage: str, error: BaseException):
        super().__init__(stage, error)
        self.stage = stage
        self.error = error

    def __str__(self) -> str:
        cause: BaseException = self.error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
        said = lines[-1] if lines else ""
        if len(said) > LONGEST_MESSAGE:
            said = said[:LONGEST_MESSAGE].rsplit(" ", 1)[0] + " …"
        return f"{type(cause).__name__}: {said}".rstrip(": ")

    @property
    def located(self) -> str:
        """With the line of the op's own code, where there is one."""
        line = line_of_error(self.error)
        return f"{self}{f' (at {line})' * bool(line)}"


class LostDeviceError(FailedCallError):
    """The CUDA context went with it: every later call fails too, so no probe can go on."""


class OpError(FailedCallError):
    """The callable raised, and another call of it may not."""

    @property
    def refusal(self) -> bool:
        """Whether the op said no on purpose rather than broke down.

        Torch's own operations say so by a RuntimeError; in a person's code it is a mishap.
        """
        deliberate = type(self.error) in (ValueError, TypeError, NotImplementedError)
        deliberate |= type(self.error) is RuntimeError and straight_from_torch(self.error)
        return self.stage == "forward" and deliberate


class NoTruthError(OpError):
    """The reference raises on these values, whatever the op does: nothing is asked of it there."""

    @property
    def refusal(self) -> bool:
        return True


def as_raised(stage: str, error: BaseException) -> FailedCallError:
    return (LostDeviceError if lost_device(error) else OpError)(stage, error)


def lost_device(error: BaseException) -> bool:
    """Whether the CUDA context is gone: after a memory fault every later call fails too."""
    return "CUDA error" in str(error) or "device-side assert" in str(error)


# Told of each call before it is made. A process that ends in one cannot say so itself: the child of
# `gradproof.isolation` tells its parent beforehand.
announce: Callable[[Callable[..., Any], Sequence[Any]], object] | None = None


class NoOutputError(TypeError):
    """The op returned no floating tensor."""


class NoGraphError(Exception):
    """No output of the op requires a gradient."""


@dataclass(frozen=True)
class Pass:
    """What one call gave: the floating outputs, and a gradient for each input asked about."""

    outputs: tuple[Tensor, ...]
    gradients: tuple[Tensor | None, ...]


def leaves(inputs: Sequence[Any], wrt: Sequence[int]) -> tuple[Any, ...]:
    """Copies in the same layouts; those in `wrt` require a gradient."""
    copies = tuple(duplicate(x) if isinstance(x, Tensor) else x for x in inputs)
    for i in wrt:
        copies[i].requires_grad_()
    return copies


def forward(op: Callable[..., Any], inputs: Sequence[Any], seed: int = 0) -> tuple[Tensor, ...]:
    """The op's floating outputs; integer ones have no gradient and are left out."""
    if announce is not None:
        announce(op, inputs)
    with seeded(seed, inputs), torch.enable_grad():
        try:
            result = op(*inputs)
            _synchronise(inputs)
        except (Exception, SystemExit) as error:
            raise as_raised("forward", error) from None
    flat = result if isinstance(result, tuple | list) else (result,)
    outputs = tuple(y for y in flat if is_float(y))
    if not outputs:
        got = short(result.dtype) if isinstance(result, Tensor) else type(result).__name__
        raise NoOutputError(f"op: expected a floating tensor or a tuple of them back, got {got}")
    return outputs


def backward(
    outputs: Sequence[Tensor],
    wrt: Sequence[Tensor],
    dy: Sequence[Tensor],
    create_graph: bool = False,
    copy_dy: bool = True,
) -> tuple[Tensor | None, ...]:
    """Gradients of Σ dy·outputs, None where no path leads. The op gets its own copy of dy."""
    live = [
        (y, duplicate(d) if copy_dy and not d.requires_grad else d)
        for y, d in zip(outputs, dy, strict=True)
        if y.requires_grad
    ]
    if not live:
        raise NoGraphError
    ys, ds = zip(*live, strict=True)
    with seeded(1, ys):
        try:
            gradients = torch.autograd.grad(
                ys, wrt, ds, allow_unused=True, create_graph=create_graph
            )
            _synchronise(ys)
        except (Exception, SystemExit) as error:
            raise as_raised("backward", error) from None
    # A copy: an op may return its own workspace, which the next call overwrites.
    return tuple(g if g is None or create_graph else g.detach().clone() for g in gradients)


def differentiate(
    op: Callable[..., Any],
    inputs: Sequence[Any],
    wrt: Sequence[int],
    dy: Sequence[Tensor],
) -> Pass:
    """One forward and backward over copies of `inputs`."""
    mine = leaves(inputs, wrt)
    outputs = forward(op, mine)
    gradients = backward(outputs, [mine[i] for i in wrt], dy)
    return Pass(tuple(y.detach() for y in outputs), gradients)


def draw_like(outputs: Sequence[Tensor], seed: int = 100) -> tuple[Tensor, ...]:
    return tuple(draw(y.shape, y.dtype, y.device, seed + i) for i, y in enumerate(outputs))


@contextmanager
def seeded(seed: int, values: Sequence[Any]) -> Iterator[None]:
    """The generators an op draws from begin at `seed`, and are put back afterwards."""
    devices = _devices(values)
    with torch.random.fork_rng(devices=devices):
        # torch.manual_seed seeds every backend there is, through torch.compile's machinery: a
        # hundred times the cost of a small op.
        torch.default_generator.manual_seed(seed)
        for device in devices:
            torch.cuda.default_generators[device].manual_seed(seed)
        yield


def _devices(values: Sequence[Any]) -> list[int]:
    tensors = (v for v in values if isinstance(v, Tensor) and v.is_cuda)
    return sorted({t.device.index or 0 for t in tensors})


def _synchronise(values: Sequence[Any]) -> None:
    # A CUDA error surfaces at the next synchronisation: here, not in some later probe.
    for device in _devices(values):
        torch.cuda.synchronize(device)
