"""Attention: softmax(Q Kᵀ) V without the matrix of probabilities ever being in memory."""

import math
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from gradkernels._arguments import autocast_to_half, check_one_dtype, check_tensors
from gradkernels._compiled import keeps_compiled
from gradkernels._dot import dot
from gradkernels._launch import (
    ceil_div,
    on_device_of,
    power_of_2,
    remembered,
    statistic_dtype,
    widen,
)
from gradkernels._node import first_order, keeps_signature
from gradkernels._tiles import tiler

# BLOCK_M (queries), BLOCK_N (keys), warps and stages by bytes an element and by the widest padded
# head for which they are meant: what a program accumulates must fit in its registers.
WIDE_TYPES = {64: (32, 32, 8, 2), 128: (16, 16, 8, 2), 256: (16, 16, 8, 1)}
HALF_TYPES = {
    "forward": {64: (128, 128, 8, 3), 128: (128, 128, 8, 3), 256: (128, 64, 8, 2)},
    "dq": {64: (128, 64, 8, 3), 128: (128, 64, 8, 3), 256: (64, 32, 4, 2)},
    "dkdv": {64: (64, 128, 8, 2), 128: (64, 64, 4, 2), 256: (32, 64, 8, 2)},
}

# They bound loops and masks alone: what Triton could gain by compiling anew for 1 and for multiples
# of 16 is less than what the first call at a new length would pay.
SIZES = ["B", "H", "Sq", "Sk"]


@triton.jit
def described(x, B, H, S, D, BLOCK_S: tl.constexpr, BLOCK_D: tl.constexpr):
    """`x` if the host has described it to TMA, else a contiguous B × H × S × D described here."""
    if isinstance(x, tl.core.tensor_descriptor_base):
        return x
    else:  # noqa: RET505 (Triton compiles both sides of an if without else)
        row = tl.cast(D, tl.int64)
        return tl.make_tensor_descriptor(
            x, [B, H, S, D], [H * S * row, S * row, row, 1], [1, 1, BLOCK_S, BLOCK_D]
        )


@triton.jit
def statistics(x, heads, S, BLOCK_S: tl.constexpr):
    """`x` if the host has described it to TMA, else a contiguous heads × S described here."""
    if isinstance(x, tl.core.tensor_descriptor_base):
        return x
    else:  # noqa: RET505
        row = tl.cast(S, tl.int64)
        return tl.make_tensor_descriptor(x, [heads, S], [row, 1], [1, BLOCK_S])


@triton.jit
def store_rows(ptr, x, head, row, S, D):
    """Rows of one head into a contiguous heads × S × D, as far as they are inside."""
    column = tl.arange(0, x.shape[1])
    ptrs = ptr + (tl.cast(head, tl.int64) * S + row)[:, None] * D + column[None, :]
    mask = (row < S)[:, None] & (column < D)[None, :]
    tl.store(ptrs, x.to(ptr.dtype.element_ty), mask=mask)


@keeps_compiled
@triton.jit(do_not_specialize=SIZES)
def attention_kernel(
    q,
    k,
    v,
    o_ptr,
    lse_ptr,
    B,
    H,
    Sq,
    Sk,
    D,
    lse_stride,
    scale: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
):
    """O = softmax(scale Q Kᵀ) V for BLOCK_M queries, and the logarithm of each softmax's sum.

    Args:
        q: B × H × Sq × D, as `tiler` gives it, read.
        k, v: B × H × Sk × D, as `tiler` gives them, read.
        o_ptr: B × H × Sq × D, written.
        lse_ptr: for each head a row of lse_stride fp32 (fp64) cells, the first Sq written.
    """
    LOG2_E: tl.constexpr = 1.4426950408889634
    blocks = tl.cdiv(Sq, BLOCK_M)
    head = tl.program_id(0) // blocks
    b, h = head // H, head % H
    # Later queries see more keys: start the long programs first, and short ones fill the end.
    m = (blocks - 1 - tl.program_id(0) % blocks) * BLOCK_M
    row = m + tl.arange(0, BLOCK_M)
    k = described(k, B, H, Sk, D, BLOCK_N, BLOCK_D)
    v = described(v, B, H, Sk, D, BLOCK_N, BLOCK_D)
    q = described(q, B, H, Sq, D, BLOCK_M, BLOCK_D).load([b, h, m, 0]).reshape(BLOCK_M, BLOCK_D)
    WIDE: tl.constexpr = lse_ptr.dtype.element_ty
    scale2: tl.constexpr = scale * LOG2_E
    o = tl.zeros([BLOCK_M, BLOCK_D], dtype=WIDE)
    total = tl.zeros([BLOCK_M], dtype=WIDE)
    top = tl.full([BLOCK_M], float("-inf"), dtype=WIDE)
    end = min(Sk, m + BLOCK_M) if CAUSAL else Sk
    whole = min(Sk, m + 1) if CAUSAL else Sk
    for n in range(0, end, BLOCK_N):
        k_tile = k.load([b, h, n, 0]).reshape(BLOCK_N, BLOCK_D)
        s = dot(q, k_tile.T, tl.zeros([BLOCK_M, BLOCK_N], dtype=WIDE))
        if n + BLOCK_N > whole:
            column = n + tl.arange(0, BLOCK_N)
            seen = (column < Sk)[None, :]
            if CAUSAL:
                seen = seen & (row[:, None] >= column[None, :])
            s = tl.where(seen, s, float("-inf"))
        new_top = tl.maximum(top, tl.max(s, axis=1) * scale2)
        p = tl.exp2(s * scale2 - new_top[:, None])
        shrink = tl.exp2(top - new_top)
        total = total * shrink + tl.sum(p, axis=1)
        v_tile = v.load([b, h, n, 0]).reshape(BLOCK_N, BLOCK_D)
        o = dot(p.to(v_tile.dtype), v_tile, o * shrink[:, None])
        top = new_top
    store_rows(o_ptr, o / total[:, None], head, row, Sq, D)
    lse_ptr += tl.cast(head, tl.int64) * lse_stride
    tl.store(lse_ptr + row, (top + tl.log2(total)) / LOG2_E, mask=row < Sq)


@keeps_compiled
@triton.jit(do_not_specialize=SIZES)
def attention_backward_dq_kernel(
    q,
    k,
    v,
    o,
    do,
    lse_ptr,
    delta_ptr,
    dq_ptr,
    B,
    H,
    Sq,
    Sk,
    D,
    statistic_stride,
    scale: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    NEED_DQ: tl.constexpr,
):
    """Δ and dQ = scale dS K for BLOCK_M queries, with dS = P (dP − Δ) and dP = dO Vᵀ.

    Δ = Σ over D of O dO, which is Σ over keys of P dP, the mean that softmax's backward needs. P
    and dP are computed here and again for dK and dV, so that no two programs add to one cell.

    Args:
        q, o, do: B × H × Sq × D, as `tiler` gives them, read.
        k, v: B × H × Sk × D, as `tiler` gives them, read.
        lse_ptr: for each head a row of statistic_stride fp32 (fp64) cells, the first Sq read.
        delta_ptr: the same for Δ, written.
        dq_ptr: B × H × Sq × D, written if NEED_DQ.
    """
    LOG2_E: tl.constexpr = 1.4426950408889634
    blocks = tl.cdiv(Sq, BLOCK_M)
    head = tl.program_id(0) // blocks
    b, h = head // H, head % H
    m = (blocks - 1 - tl.program_id(0) % blocks) * BLOCK_M
    row = m + tl.arange(0, BLOCK_M)
    o = described(o, B, H, Sq, D, BLOCK_M, BLOCK_D).load([b, h, m, 0]).reshape(BLOCK_M, BLOCK_D)
    do = described(do, B, H, Sq, D, BLOCK_M, BLOCK_D).load([b, h, m, 0]).reshape(BLOCK_M, BLOCK_D)
    delta = tl.sum(widen(o) * widen(do), axis=1)
    statistic = tl.cast(head, tl.int64) * statistic_stride + row
    tl.store(delta_ptr + statistic, delta, mask=row < Sq)
    if NEED_DQ:
        lse = tl.load(lse_ptr + statistic, mask=row < Sq, other=0.0) * LOG2_E
        q = described(q, B, H, Sq, D, BLOCK_M, BLOCK_D).load([b, h, m, 0])
        q = q.reshape(BLOCK_M, BLOCK_D)
        k = described(k, B, H, Sk, D, BLOCK_N, BLOCK_D)
        v = described(v, B, H, Sk, D, BLOCK_N, BLOCK_D)
        WIDE: tl.constexpr = lse.dtype
        dq = tl.zeros([BLOCK_M, BLOCK_D], dtype=WIDE)
        end = min(Sk, m + BLOCK_M) if CAUSAL else Sk
        whole = min(Sk, m + 1) if CAUSAL else Sk
        for n in range(0, end, BLOCK_N):
            k_tile = k.load([b, h, n, 0]).reshape(BLOCK_N, BLOCK_D)
            v_tile = v.load([b, h, n, 0]).reshape(BLOCK_N, BLOCK_D)
            s = dot(q, k_tile.T, tl.zeros([BLOCK_M, BLOCK_N], dtype=WIDE))
            dp = dot(do, v_tile.T, tl.zeros([BLOCK_M, BLOCK_N], dtype=WIDE))
            p = tl.exp2(s * (scale * LOG2_E) - lse[:, None])
            if n + BLOCK_N > whole:
                column = n + tl.arange(0, BLOCK_N)
                seen = (column < Sk)[None, :]
                if CAUSAL:
                    seen = seen & (row[:, None] >= column[None, :])
                p = tl.where(seen, p, 0.0)
            ds = p * (dp - delta[:, None])
            dq = dot(ds.to(k_tile.dtype), k_tile, dq)
        store_rows(dq_ptr, dq * scale, head, row, Sq, D)


@keeps_compiled
@triton.jit(do_not_specialize=SIZES)
def attention_backward_dkdv_kernel(
    q,
    k,
    v,
    do,
    lse,
    delta,
    dk_ptr,
    dv_ptr,
    B,
    H,
    Sq,
    Sk,
    D,
    scale: tl.constexpr,
    CAUSAL: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_D: tl.constexpr,
    NEED_DK: tl.constexpr,
    NEED_DV: tl.constexpr,
):
    """dV = Pᵀ dO and dK = scale dSᵀ Q for BLOCK_N keys, with dS = P (dP − Δ) and dP = dO Vᵀ.

    Everything is computed transposed, keys by queries, so that Pᵀ and dSᵀ go from registers
    straight into the next product.

    Args:
        q, do: B × H × Sq × D, as `tiler` gives them, read.
        k, v: B × H × Sk × D, as `tiler` gives them, read.
        lse, delta: heads × Sq, as `tiler` gives them, read.
        dk_ptr, dv_ptr: B × H × Sk × D, written if NEED_DK, NEED_DV.
    """
    LOG2_E: tl.constexpr = 1.4426950408889634
    blocks = tl.cdiv(Sk, BLOCK_N)
    head = tl.program_id(0) // blocks
    b, h = head // H, head % H
    n = tl.program_id(0) % blocks * BLOCK_N
    column = n + tl.arange(0, BLOCK_N)
    k = described(k, B, H, Sk, D, BLOCK_N, BLOCK_D).load([b, h, n, 0]).reshape(BLOCK_N, BLOCK_D)
    v = described(v, B, H, Sk, D, BLOCK_N, BLOCK_D).load([b, h, n, 0]).reshape(BLOCK_N, BLOCK_D)
    q = described(q, B, H, Sq, D, BLOCK_M, BLOCK_D)
    do = described(do, B, H, Sq, D, BLOCK_M, BLOCK_D)
    lse = statistics(lse, B * H, Sq, BLOCK_M)
    delta = statistics(delta, B * H, Sq, BLOCK_M)
    WIDE: tl.constexpr = lse.dtype
    dk = tl.zeros([BLOCK_N, BLOCK_D], dtype=WIDE)
    dv = tl.zeros([BLOCK_N, BLOCK_D], dtype=WIDE)
    # Queries before the block's first key see none of it, those past its last key see all.
    start = n // BLOCK_M * BLOCK_M if CAUSAL else 0
    whole = n + BLOCK_N - 1 if CAUSAL else 0
    for m in range(start, Sq, BLOCK_M):
        q_tile = q.load([b, h, m, 0]).reshape(BLOCK_M, BLOCK_D)
        lse_tile = lse.load([head, m]).reshape(BLOCK_M) * LOG2_E
        s = dot(k, q_tile.T, tl.zeros([BLOCK_N, BLOCK_M], dtype=WIDE))
        p = tl.exp2(s * (scale * LOG2_E) - lse_tile[None, :])
        # Tiles are zero past Sq, where a query would add nothing anyway; but without this branch
        # the assembler makes the products wait for each other (tests/kernels/compile_matrix.py).
        if m < whole or m + BLOCK_M > Sq:
            row = m + tl.arange(0, BLOCK_M)
            seen = (row < Sq)[None, :]
            if CAUSAL:
                seen = seen & (row[None, :] >= column[:, None])
            p = tl.where(seen, p, 0.0)
        do_tile = do.load([b, h, m, 0]).reshape(BLOCK_M, BLOCK_D)
        delta_tile = delta.load([head, m]).reshape(BLOCK_M)
        if NEED_DK:
            dp = dot(v, do_tile.T, tl.zeros([BLOCK_N, BLOCK_M], dtype=WIDE))
        if NEED_DV:
            dv = dot(p.to(do_tile.dtype), do_tile, dv)
        if NEED_DK:
            ds = p * (dp - delta_tile[None, :])
            dk = dot(ds.to(q_tile.dtype), q_tile, dk)
    if NEED_DK:
        store_rows(dk_ptr, dk * scale, head, column, Sk, D)
    if NEED_DV:
        store_rows(dv_ptr, dv, head, column, Sk, D)


@remembered
def choose_tile(kernel: str, D: int, size: int, memory: int) -> tuple[int, int, int, int, int]:
    """BLOCK_M, BLOCK_N, BLOCK_D, warps and stages of a kernel for heads of D elements of `size`.

    As many stages as shared memory has room for, which on consumer GPUs is less than half of an
    H100's: a program holds rows of two tensors (the forward of one) and streams those of two.
    """
    BLOCK_D = max(16, power_of_2(D, 256))
    table = HALF_TYPES[kernel] if size == 2 else WIDE_TYPES
    BLOCK_M, BLOCK_N, warps, stages = table[max(64, BLOCK_D)]
    held, streamed = {
        "forward": (BLOCK_M, 2 * BLOCK_N),
        "dq": (2 * BLOCK_M, 2 * BLOCK_N),
        "dkdv": (2 * BLOCK_N, 2 * BLOCK_M),
    }[kernel]
    row = BLOCK_D * size
    room = (memory - 1024 - held * row) // (streamed * row)
    return BLOCK_M, BLOCK_N, BLOCK_D, warps, max(1, min(stages, room))


def new_statistic(q: Tensor) -> Tensor:
    """A cell for each query, heads × Sq."""
    B, H, Sq, _ = q.shape
    return tiler(q).empty(q, B * H, Sq, dtype=statistic_dtype(q))


def attention_forward(
    q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float
) -> tuple[Tensor, Tensor]:
    """Launch `attention_kernel`; returns O and the logsumexp of each query's scores."""
    (B, H, Sq, D), Sk = q.shape, k.shape[2]
    o = torch.empty_like(q, memory_format=torch.contiguous_format)
    lse = new_statistic(q)
    if not (q.numel() and k.numel()):
        return o.zero_(), lse
    tiled, size = tiler(q), q.element_size()
    q, k, v = tiled.aligned(q), tiled.aligned(k), tiled.aligned(v)
    BLOCK_M, BLOCK_N, BLOCK_D, warps, stages = choose_tile("forward", D, size, tiled.shared_memory)
    keys = [1, 1, BLOCK_N, BLOCK_D]
    with on_device_of(q):
        attention_kernel[(ceil_div(Sq, BLOCK_M) * B * H,)](
            tiled(q, [1, 1, BLOCK_M, BLOCK_D]), tiled(k, keys), tiled(v, keys), o, lse,
            B, H, Sq, Sk, D, lse.stride(0), scale, causal, BLOCK_M, BLOCK_N, BLOCK_D,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
    return o, lse


def attention_backward(
    do: Tensor,
    q: Tensor,
    k: Tensor,
    v: Tensor,
    o: Tensor,
    lse: Tensor,
    causal: bool,
    scale: float,
    need_dq: bool,
    need_dk: bool,
    need_dv: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Launch the two backward kernels: Δ and dQ by queries, then dK and dV by keys."""
    (B, H, Sq, D), Sk = q.shape, k.shape[2]
    dq, dk, dv = (
        torch.empty_like(t, memory_format=torch.contiguous_format) if need else None
        for t, need in ((q, need_dq), (k, need_dk), (v, need_dv))
    )
    if not (q.numel() and k.numel()):
        for t in (dq, dk, dv):
            if t is not None:
                t.zero_()
        return dq, dk, dv
    delta = new_statistic(q)
    tiled, size = tiler(q), q.element_size()
    q, k, v, o, do = (tiled.aligned(t) for t in (q, k, v, o, do))
    with on_device_of(q):
        BLOCK_M, BLOCK_N, BLOCK_D, warps, stages = choose_tile("dq", D, size, tiled.shared_memory)
        queries, keys = [1, 1, BLOCK_M, BLOCK_D], [1, 1, BLOCK_N, BLOCK_D]
        attention_backward_dq_kernel[(ceil_div(Sq, BLOCK_M) * B * H,)](
            tiled(q, queries), tiled(k, keys), tiled(v, keys), tiled(o, queries),
            tiled(do, queries), lse, delta, dq, B, H, Sq, Sk, D, lse.stride(0),
            scale, causal, BLOCK_M, BLOCK_N, BLOCK_D, need_dq,
            num_warps=warps, num_stages=stages,
        )  # fmt: skip
        if need_dk or need_dv:
            BLOCK_M, BLOCK_N, BLOCK_D, warps, stages = choose_tile(
                "dkdv", D, size, tiled.shared_memory
            )
            queries, keys = [1, 1, BLOCK_M, BLOCK_D], [1, 1, BLOCK_N, BLOCK_D]
            attention_backward_dkdv_kernel[(ceil_div(Sk, BLOCK_N) * B * H,)](
                tiled(q, queries), tiled(k, keys), tiled(v, keys), tiled(do, queries),
                tiled(lse, [1, BLOCK_M]), tiled(delta, [1, BLOCK_M]), dk, dv,
                B, H, Sq, Sk, D, scale, causal, BLOCK_M, BLOCK_N, BLOCK_D, need_dk, need_dv,
                num_warps=warps, num_stages=stages,
            )  # fmt: skip
    return dq, dk, dv


@keeps_signature
class Attention(torch.autograd.Function):
    """The graph node of `attention`. Saves Q, K, V, O and one logsumexp a query.

    From that one number P = exp(S − lse) follows block by block; P itself would be Sq × Sk.
    """

    @staticmethod
    def forward(
        q: Tensor, k: Tensor, v: Tensor, causal: bool, scale: float
    ) -> tuple[Tensor, Tensor]:
        return attention_forward(q, k, v, causal, scale)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        q, k, v, ctx.causal, ctx.scale = inputs
        o, lse = output
        ctx.mark_non_differentiable(lse)
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(q, k, v, o, lse)

    @staticmethod
    def backward(ctx: Any, do: Tensor | None, _dlse: None) -> tuple[Tensor | None, ...]:
        if do is None:
            return None, None, None, None, None
        needs = ctx.needs_input_grad[:3]
        saved = ctx.saved_tensors
        grads = first_order(attention_backward, do, *saved, ctx.causal, ctx.scale, *needs)
        return *grads, None, None


def attention(
    q: Tensor, k: Tensor, v: Tensor, causal: bool = False, scale: float | None = None
) -> Tensor:
    r"""Scaled dot-product attention, differentiable once.

    $$S = \text{scale}\; Q K^\top, \qquad P = \operatorname{softmax}(S), \qquad O = P V$$

    $$dV = P^\top dO, \quad dP = dO\,V^\top, \quad \Delta = \textstyle\sum_D O\,dO, \quad
    dS = P\,(dP - \Delta), \quad dQ = \text{scale}\; dS\,K, \quad dK = \text{scale}\; dS^\top Q$$

    Args:
        q: Q, (B, H, Sq, D), any layout, fp16, bf16, fp32 or fp64, D up to 256.
        k: K, (B, H, Sk, D), of q's dtype.
        v: V, (B, H, Sk, D), of q's dtype.
        causal: query i sees keys 0 to i, counted from the start of both (the mask is aligned to
            the top left, as `is_causal` of `torch.nn.functional.scaled_dot_product_attention`),
            so that each sees at least one.
        scale: factor of the scores; `None` means 1/√D.

    Returns:
        O, (B, H, Sq, D), contiguous, of q's dtype; zeros where there are no keys. Scores,
        exponentials and sums are fp32 (fp64 for fp64; fp32 operands are not rounded to TF32), and
        P and dS are rounded to the inputs' dtype before they are multiplied. Inside autocast,
        arguments other than fp64 are cast to its dtype first.

    Raises:
        TypeError: an argument is no floating tensor, or dtypes differ.
        ValueError: an argument is where no kernel can run, or shapes do not fit.

    Source: Dao, "FlashAttention-2", 2023 (arXiv:2307.08691).
    """
    check_tensors("attention", q=q, k=k, v=v)
    if q.dim() != 4 or k.dim() != 4 or k.shape != v.shape or _but_length(q) != _but_length(k):
        raise ValueError(
            f"attention: q has shape {tuple(q.shape)}, k {tuple(k.shape)} and v {tuple(v.shape)}; "
            "expected (B, H, Sq, D), (B, H, Sk, D) and (B, H, Sk, D)"
        )
    if q.shape[3] > 256:
        raise ValueError(f"attention: q has heads of size {q.shape[3]}; expected at most 256")
    q, k, v = autocast_to_half(q, k, v)
    check_one_dtype("attention", q=q, k=k, v=v)
    scale = 1 / math.sqrt(max(q.shape[3], 1)) if scale is None else float(scale)
    # The kernels take max(scale S) as scale max S, and hide keys by S = -inf.
    if scale < 0:
        q, scale = -q, -scale
    elif scale == 0:
        q, scale = 0 * q, 1.0
    o, _ = Attention.apply(q, k, v, bool(causal), scale)
    return o


def _but_length(t: Tensor) -> tuple[int, ...]:
    B, H, _, D = t.shape
    return B, H, D
