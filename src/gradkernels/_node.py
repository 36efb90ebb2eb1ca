"""What every graph node shares: its signature read once, and no second derivative in silence."""

from collections.abc import Callable
from inspect import Signature, signature
from typing import Any, ClassVar, TypeVar

import torch
from torch import Tensor

Node = TypeVar("Node", bound=type[torch.autograd.Function])


def keeps_signature(node: Node) -> Node:
    """Keep the signature of `node.forward`, to which torch binds the arguments of every call.

    Where a node has `setup_context`, torch asks `inspect` for it anew each time and fills in
    defaults, which takes longer than a launch; a signature found on the function is taken as it is.
    """
    forward: Any = node.forward
    forward.__signature__ = Complete(list(signature(forward).parameters.values()))
    return node


class Complete(Signature):
    """The signature of a function that is always given all its arguments, in order."""

    def bind(self, *args: Any) -> "Given":  # type: ignore[override]
        return Given(args)


class Given:
    """What is asked of `inspect.BoundArguments`, where there are no defaults to fill in."""

    kwargs: ClassVar[dict[str, Any]] = {}

    def __init__(self, args: tuple[Any, ...]):
        self.args = args

    def apply_defaults(self) -> None:
        pass


def first_order(launch: Callable[..., Any], *args: Any) -> Any:
    """`launch(*args)`, the gradients, in such a way that differentiating them again raises.

    The gradients hang on a node of their own whose parents are the tensors among `args`, so every
    path from a second derivative back to an input passes it, also when dy is a constant, where
    `torch.autograd.function.once_differentiable` loses the second derivative in silence.
    """
    if not torch.is_grad_enabled():  # autograd records backward only under create_graph=True
        return launch(*args)
    return FirstOrder.apply(launch, *args)


class FirstOrder(torch.autograd.Function):
    """The node whose forward computes gradients and whose backward refuses."""

    @staticmethod
    def forward(launch: Callable[..., Any], *args: Any) -> Any:
        return launch(*args)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.name = inputs[0].__name__

    @staticmethod
    def backward(ctx: Any, *ddx: Tensor) -> None:
        raise NotImplementedError(
            f"{ctx.name} computes a first derivative and has none of its own: for a second "
            "derivative (a gradient penalty, a Hessian) use torch's operation instead"
        )
