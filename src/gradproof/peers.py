"""What torch's own checks say about an op, in two words: for comparison with `prove`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.autograd.gradcheck import GradcheckError

from gradproof.prove import quiet
from gradproof.tensors import converted, is_float


def gradcheck(op: Callable[..., Any], inputs: Sequence[Any]) -> str:
    """torch.autograd.gradcheck in fp64: `passes`, `fails`, or `cannot run` and why."""
    mine = converted(inputs, torch.float64)
    mine = tuple(x.requires_grad_() if is_float(x) else x for x in mine)
    with quiet():
        try:
            torch.autograd.gradcheck(op, mine)
        except GradcheckError:
            return "fails"
        except Exception as error:
            return f"cannot run ({type(error).__name__})"
    return "passes"


def opcheck(op: Any, inputs: Sequence[Any]) -> str:
    """torch.library.opcheck, which takes custom ops of torch.library only."""
    with quiet():
        try:
            torch.library.opcheck(op, tuple(inputs))
        except ValueError:
            return "does not apply"
        except Exception:
            return "fails"
    return "passes"
