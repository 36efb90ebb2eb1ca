"""Up an axis of the op by sizes ever larger: what goes wrong there, and how much work it is."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from gradproof.finite_differences import FiniteDifferences
from gradproof.judge import judge
from gradproof.passes import NoGraphError, NoOutputError, OpError
from gradproof.sizing import LARGE, Axis, accepts, elements_of, indexed, resized
from gradproof.subject import Subject, found_once
from gradproof.work import Climb

# Each step is dared if the first size of the step before allows it; see gradproof.work.
STEPS = ((1, 0), (17,), (64,), (257,), (1025, 1024), (LARGE[1],), (LARGE[0],))
# There each may be compiled anew, and none waits for a smaller one.
STEPS_ON_GPU = ((1, 0, 17, 1024, LARGE[1], LARGE[0]),)
# What went wrong and the names of what was wrong, or a deliberate refusal as it came.
Trouble = OpError | tuple[str, tuple[str, ...]]
RIGHT = ("", ())
GROSS_SIZE = 1e-3  # of the largest entry: what goes wrong at an edge goes wrong by more than that


@dataclass(frozen=True)
class Ascent:
    """What went wrong at each size that was tried, and the work it took, from which to go on."""

    trials: tuple[tuple[int, Trouble], ...]
    climb: Climb


@found_once
def foot(subject: Subject) -> Climb:
    """From where every axis is climbed: the inputs given."""
    return Climb.of(subject, trouble_of)


@found_once
def ascent(subject: Subject, axis: Axis) -> Ascent:
    """Up an axis, as far as the work allows."""
    trials: list[tuple[int, Trouble]] = []
    climb, steps = foot(subject), STEPS_ON_GPU if subject.cuda else STEPS
    for step, higher in itertools.zip_longest(steps, steps[1:], fillvalue=LARGE):
        for size in step:
            changed = {axis: size}
            if size == axis.size or (size == LARGE[0] and indexed(subject, axis)):
                continue
            if (variant := affordable(subject, changed, climb)) is None:
                continue
            last = not climb.may_allow(elements_of(subject, {axis: higher[0]}))
            if size != step[0] or size == 1 or last:
                trials.append((size, trouble_of(variant)))
                continue
            there, trouble = climb.after(
                elements_of(subject, changed), partial(trouble_of, variant)
            )
            # A run cut short measures too little.
            climb = there if trouble == RIGHT or there.slope > climb.slope else climb
            trials.append((size, trouble))
    return Ascent(tuple(trials), climb)


def climbed(subject: Subject, axis: Axis) -> Climb:
    """How far up an axis one may go, the same for all who ask; on a GPU nothing is run for that."""
    at = foot(subject)
    return at if at.limit is None else ascent(subject, axis).climb


def affordable(subject: Subject, changed: Mapping[Axis, int], climb: Climb) -> Subject | None:
    """The op at these sizes; None where they cost too much, or the reference refuses them."""
    elements = elements_of(subject, changed)
    if not climb.allows(elements) or not accepts(subject, changed):
        return None
    return resized(subject, changed)


def trouble_of(subject: Subject) -> Trouble:
    """What is wrong at this size; a deliberate refusal comes back as it is."""
    if isinstance(subject.oracle, FiniteDifferences):
        subject = replace(subject, oracle=replace(subject.oracle, sample=6))
    try:
        verdict = judge(subject, gross=GROSS_SIZE)
    except OpError as raised:
        # With no reference to say that it should run there, a forward that raises has refused; and
        # where a module's buffers have sizes of their own, no reference can say that.
        unasked = subject.reference is None or bool(subject.state.buffers)
        refused = raised.refusal or (unasked and raised.stage == "forward")
        return raised if refused else (f"the {raised.stage} raises {raised}", ("y",))
    except NoOutputError as error:
        return str(error), ("y",)
    except NoGraphError:
        return "the output has no grad_fn", ("y",)
    if subject.state.outgrown:
        return OpError("forward", ValueError("a buffer would have to change its size"))
    if verdict.right:
        return RIGHT
    said = [f"{name} is {mismatch}" for name, mismatch in verdict.outputs]
    said += [wrong.statement for wrong in verdict.gradients]
    said += [f"{name} is None" for name in verdict.missing]
    return said[0], verdict.wrong_names
