"""The traps by name. Names are stable: reports, gallery anchors and tests share them.

Their order is the order of a report: what explains most comes first, and a generic trap is left out
of a report that holds a telling one.
"""

from __future__ import annotations

from dataclasses import dataclass

GALLERY = "https://backward-in-triton.github.io/backward-in-triton/lessons/trap-gallery/"


@dataclass(frozen=True)
class Trap:
    """One way to be wrong.

    Attributes:
        name: as reports, tests and the gallery's anchors call it.
        title: what is wrong, as a clause.
        mend: what usually cures it.
        generic: it names no cause.
        seen_in_one_run: a single run shows it, so it holds of an op whose numbers mean nothing too.
        brings: traps that follow from this one, and are left out of a report that holds it.
    """

    name: str
    title: str
    mend: str
    generic: bool = False
    seen_in_one_run: bool = False
    brings: tuple[str, ...] = ()

    @property
    def link(self) -> str:
        """Where the gallery shows it."""
        return f"{GALLERY}#{self.name}"


def _catalogue(*traps: Trap) -> dict[str, Trap]:
    return {trap.name: trap for trap in traps}


TRAPS = _catalogue(
    # The op could not be run at all.
    Trap(
        "illegal-address",
        "the op died with a memory fault",
        "check every mask and offset against the size of the tensor it indexes; "
        "compute-sanitizer names the access",
        seen_in_one_run=True,
    ),
    Trap(
        "crash",
        "the op took its process down",
        "look for an assertion in a library below, or for a call of exit",
        seen_in_one_run=True,
    ),
    Trap(
        "hang",
        "the op did not come back",
        "look for a loop whose bound is read from memory, or a lock that is never released",
        seen_in_one_run=True,
    ),
    Trap(
        "forward-raises",
        "the forward raises on the inputs given",
        "read the error above; the op must accept the inputs it is proved on",
        seen_in_one_run=True,
    ),
    # The contract with autograd.
    Trap(
        "no-grad-fn",
        "the output is invisible to autograd",
        "wrap the kernel in a torch.autograd.Function and call it by .apply",
        seen_in_one_run=True,
    ),
    Trap(
        "forward-called-directly",
        "Function.forward was called as a plain function",
        "call Function.apply: only apply records the node whose backward is yours",
        brings=("no-grad-fn",),
        seen_in_one_run=True,
    ),
    Trap(
        "wrong-number-of-gradients",
        "backward returns the wrong number of gradients",
        "return one value for each argument given to apply, in order, None for those that are not "
        "differentiable",
        seen_in_one_run=True,
    ),
    Trap(
        "wrong-gradient-shape",
        "backward returns a gradient of the wrong shape",
        "a gradient has its input's shape; check the order of what backward returns",
        seen_in_one_run=True,
    ),
    Trap(
        "gradients-swapped",
        "gradients are returned in the wrong order",
        "return them in the order of forward's arguments",
        brings=("transposed-gradient",),
    ),
    Trap(
        "missing-gradient",
        "a tensor that needs a gradient gets None",
        "return its gradient from backward; a parameter that receives None never trains",
        seen_in_one_run=True,
    ),
    Trap(
        "writes-into-grad",
        "backward writes into .grad itself",
        "return the gradient and let autograd add it: it does the adding, for every consumer",
        brings=(
            "microbatches-disagree",
            "wrong-with-mixed-dtypes",
        ),
        seen_in_one_run=True,
    ),
    Trap(
        "unreduced-gradient",
        "the gradient is returned unreduced and autograd sums it silently",
        "reduce it in the backward, with an fp32 accumulator, to the shape of its input",
        seen_in_one_run=True,
    ),
    Trap(
        "gradient-dtype",
        "the gradient comes in a narrower dtype and is cast silently",
        "allocate it in its input's dtype; accumulate wider, never narrower",
        brings=("rounded-through-half",),
        seen_in_one_run=True,
    ),
    Trap(
        "gradient-for-integer",
        "a gradient is returned for an argument that cannot have one, and dropped silently",
        "return None in that place; check that the others stand where they should",
        seen_in_one_run=True,
    ),
    Trap(
        "ignores-needs-input-grad",
        "backward fails or changes when only some inputs need a gradient",
        "ask ctx.needs_input_grad for each input, and compute each gradient on its own",
    ),
    # Memory that is not yours.
    Trap(
        "input-overwritten",
        "the op writes to an input",
        "write to a fresh tensor; a kernel's store does not bump the version counter, so autograd "
        "cannot notice",
        brings=(
            "microbatches-disagree",
            "wrong-under-checkpoint",
            "saved-overwritten",
            "wrong-under-func",
            "shared-state",
        ),
        seen_in_one_run=True,
    ),
    Trap(
        "dy-overwritten",
        "backward writes to dy",
        "write to a fresh tensor: another branch of the graph reads the same dy",
        seen_in_one_run=True,
    ),
    Trap(
        "saved-overwritten",
        "backward writes to a saved tensor",
        "write to a fresh tensor: a second backward, or a checkpoint, reads it again",
        seen_in_one_run=True,
    ),
    Trap(
        "writes-past-end",
        "the op writes outside the tensors it allocated",
        "give the store a mask",
        seen_in_one_run=True,
    ),
    Trap(
        "reads-past-end",
        "the op reads outside the tensors it was given",
        "give the load a mask, and other= the neutral element of what follows",
    ),
    Trap(
        "unzeroed-accumulator",
        "the op adds onto memory nobody cleared",
        "allocate with torch.zeros, or write once instead of adding",
    ),
    Trap(
        "unwritten-gradient",
        "part of a result is never written",
        "size the grid with triton.cdiv, or allocate with torch.zeros where zero is meant",
    ),
    Trap(
        "uninitialised-memory",
        "the result depends on memory nobody wrote",
        "write every cell of a buffer before it is read: partials of programs that had no work too",
    ),
    # State.
    Trap(
        "accumulates-across-calls",
        "each backward adds to what the last one left",
        "allocate the gradient in backward; clear a workspace before every use",
    ),
    Trap(
        "shared-state",
        "a later forward changes an earlier call's gradient",
        "save with ctx.save_for_backward; keep nothing on the class, the module or in a global",
        brings=(
            "saved-unprotected",
            "wrong-under-checkpoint",
            "microbatches-disagree",
            "wrong-under-vmap",
        ),
    ),
    Trap(
        "first-call-differs",
        "the first call on a new shape gives another result",
        "no autotune around a kernel that accumulates: its trial runs add too (reset_to_zero=)",
    ),
    Trap(
        "not-deterministic",
        "the same call gives different bits",
        "where programs share a cell, write partials and sum them in a second pass; atomics change "
        "the order, and a plain load-add-store loses contributions",
    ),
    Trap(
        "reference-cycle",
        "the output is kept alive by a reference cycle",
        "save outputs with ctx.save_for_backward, which knows them and keeps no cycle",
        seen_in_one_run=True,
    ),
    Trap(
        "saved-on-ctx",
        "a tensor is kept as an attribute of ctx",
        "ctx.save_for_backward(x): it checks versions, frees after backward and breaks cycles",
        brings=("saved-unprotected",),
        seen_in_one_run=True,
    ),
    Trap(
        "saved-unprotected",
        "changing a tensor between forward and backward changes the gradient silently",
        "save it with ctx.save_for_backward, or save a copy",
    ),
    # Layouts.
    Trap(
        "dy-strides-ignored",
        "dy is read with another tensor's strides",
        "dy = dy.contiguous() before the launch, or hand the kernel dy.stride()",
    ),
    Trap(
        "dy-layout-refused",
        "backward raises on a layout of dy that autograd produces",
        "dy = dy.contiguous(); nobody can choose the layout in which a gradient arrives",
    ),
    Trap(
        "input-strides-ignored",
        "an input is read or its gradient written with another tensor's strides",
        "x = x.contiguous() in forward, and save that one; empty_like keeps x's strides",
    ),
    # Sizes.
    Trap(
        "empty-input",
        "an empty input breaks the op",
        "return early for numel() == 0, with zeros for the gradients of parameters",
    ),
    Trap(
        "single-element",
        "a dimension of one breaks the op",
        "mind broadcasting and strides of size-one dimensions, and divisions by n − 1",
    ),
    Trap(
        "ragged-edge",
        "sizes that are no multiple of the block are wrong",
        "mask the last block's loads and stores, neutral element in the masked lanes, size the "
        "grid and its partials with triton.cdiv, and divide by the size, not by the block",
    ),
    Trap(
        "broadcast-axis",
        "right only where two sizes agree",
        "write the broadcast out, [:, None] or [None, :], and give each axis its own size",
    ),
    # Arithmetic.
    Trap(
        "flag-ignored",
        "backward ignores an argument that the forward honoured",
        "pass the flag to the backward kernel, and mask there as the forward does",
    ),
    Trap(
        "ignored-targets",
        "entries marked as ignored still contribute",
        "give an ignored row zero gradient, and count only the others in a mean",
    ),
    Trap(
        "dy-ignored",
        "the gradient does not depend on dy",
        "multiply by the upstream gradient: .sum() hides this, since there dy is 1",
    ),
    Trap(
        "not-linear-in-dy",
        "the gradient is not linear in dy",
        "a vector-Jacobian product is linear in its vector; look for a clamp or a square of dy, or "
        "memory that nobody wrote (ask the probe poison)",
    ),
    Trap(
        "zero-gradient",
        "the gradient is zero throughout",
        "check that the kernel is launched, that its mask is not empty, and that it stores where "
        "you read",
    ),
    Trap(
        "wrong-sign",
        "the gradient has the wrong sign",
        "differentiate again by hand, or with sympy, and compare term by term",
    ),
    Trap(
        "constant-factor",
        "the gradient is off by a constant factor",
        "look for a constant of the formula that is lost or counted twice: the 2 of a square, a "
        "scale such as 1/√d, the 1/N of a mean, the ln 2 between base 2 and base e",
    ),
    Trap(
        "transposed-gradient",
        "the gradient is transposed",
        "linear stores its weight (out, in): dX = dY·W and dW = dYᵀ·X",
    ),
    Trap(
        "contributions-lost",
        "part of dy never reaches the gradient",
        "where many programs contribute to one cell, add (atomics, or partials and a second pass); "
        "a store keeps only the last",
    ),
    Trap(
        "missing-row-term",
        "a term that is reduced over the row is missing",
        "the row statistics depend on x too: their term is a reduction over the row, subtracted",
    ),
    Trap(
        "overflow",
        "large inputs give inf or NaN where the answer is finite",
        "subtract the maximum before exp, branch on the sign, and hold intermediates in fp32",
        brings=(
            "special-values",
            "cancellation",
        ),
    ),
    Trap(
        "special-values",
        "zeros or infinities are wrong where the answer is finite",
        "guard the division or the logarithm, with the same eps in both passes; mask after exp, "
        "not only before",
        brings=("single-element",),
    ),
    Trap(
        "rounded-through-half",
        "a wide result was squeezed through a narrower dtype",
        "store with the pointer's own dtype, .to(ptr.dtype.element_ty); no fixed tl.float16; for "
        "matrix products say input_precision='ieee' where fp32 is promised",
    ),
    Trap(
        "half-precision-accumulator",
        "the sum is kept in half precision",
        "accumulate in fp32: .to(tl.float32) before tl.sum, fp32 partials, fp32 dot accumulators",
    ),
    Trap(
        "half-precision-statistics",
        "the row statistics are kept in half precision",
        "compute and save mean, rstd and logsumexp in fp32: one number a row costs nothing",
    ),
    Trap(
        "cancellation",
        "a difference of large numbers loses the answer",
        "two passes, or Welford: E[(x − mean)²], not E[x²] − mean²",
    ),
    Trap(
        "small-gradients-lost",
        "small gradients vanish in a rounding",
        "keep probabilities in fp32 until the difference is taken; p − 1 after rounding p is 0",
    ),
    Trap(
        "size-limit",
        "beyond some size the op is wrong or raises",
        "loop over blocks inside the program or over programs in the grid; use 64-bit offsets, "
        "and for saved indices a type that holds them",
    ),
    # Composition.
    Trap(
        "double-backward-lost",
        "the second derivative is lost silently",
        "raise in backward when torch.is_grad_enabled(), or make backward itself differentiable; "
        "once_differentiable misses a constant dy",
    ),
    Trap(
        "double-backward-wrong",
        "the second derivative is wrong",
        "differentiate the backward too, through saved inputs, or refuse it",
    ),
    Trap(
        "microbatches-disagree",
        "gradients accumulated over microbatches differ",
        "return fresh tensors, and scale by the size you were given, not by one you remember",
    ),
    Trap(
        "wrong-under-autocast",
        "wrong or broken under autocast",
        "decorate forward and backward with torch.amp.custom_fwd and custom_bwd, which give both "
        "passes the same casts",
    ),
    Trap(
        "wrong-with-mixed-dtypes",
        "wrong where inputs differ in dtype",
        "promote explicitly, and return each gradient in its own input's dtype",
    ),
    Trap(
        "wrong-under-checkpoint",
        "wrong under activation checkpointing",
        "keep no state outside ctx: the forward runs twice",
    ),
    Trap(
        "wrong-under-func",
        "wrong under torch.func",
        "split forward and setup_context; functorch calls them apart",
    ),
    Trap(
        "wrong-under-vmap",
        "wrong under vmap",
        "give the Function a vmap staticmethod, or let it refuse",
    ),
    Trap(
        "wrong-under-compile",
        "wrong under torch.compile",
        "register the op with torch.library.triton_op and register_autograd",
    ),
    # Wrong, and no more can be said.
    Trap(
        "backward-raises",
        "the backward raises",
        "read the error above; it came out of your backward",
        generic=True,
        seen_in_one_run=True,
    ),
    Trap(
        "wrong-forward",
        "the forward is not the reference's",
        "mend the forward first: a gradient of another function cannot be right",
        generic=True,
    ),
    Trap(
        "wrong-gradient",
        "the gradient is wrong",
        "derive it again, and compare term by term at the place named",
        generic=True,
    ),
    Trap(
        "wrong-at-some-sizes",
        "wrong at some sizes and right at others",
        "compare the sizes that fail with the block sizes and the grid",
        generic=True,
    ),
    Trap(
        "wrong-in-some-dtypes",
        "right in one dtype and wrong in another",
        "widen every load with .to(tl.float32) before arithmetic, and store in the pointer's dtype",
        generic=True,
    ),
)
