"""Atomics add onto dw, and torch.empty hands over whatever the last tensor left there."""
# time limit: 300 s

# %% broken
import torch
import triton
import triton.language as tl

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def scale_backward_kernel(x_ptr, dy_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(dw_ptr, tl.sum(x * dy))


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        x = x.contiguous()
        ctx.save_for_backward(x, w)
        return w * x

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, w = ctx.saved_tensors
        dy = dy.contiguous()
        dw = torch.empty((), device=x.device)
        scale_backward_kernel[(triton.cdiv(x.numel(), 64),)](x, dy, dw, x.numel(), BLOCK=64)
        return w * dy, dw.to(w.dtype)


def reference(x, w):
    return w * x


# %% wrong
torch.manual_seed(0)
x = torch.randn(100, device=device).requires_grad_()
w = torch.tensor(1.5, device=device, requires_grad=True)

left_behind = torch.full((), 1000.0, device=device)  # memory that torch.empty may be given next
del left_behind
dx, dw = torch.autograd.grad(Broken.apply(x, w).sum(), (x, w))
print(f"dx is right: {torch.equal(dx, torch.full_like(x, 1.5))}; dw may be anything")

# %% proof
report = prove(Broken.apply, (x, w), reference=reference)
print(report)


# %% mended
@triton.jit
def partials_kernel(x_ptr, dy_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(dw_ptr + tl.program_id(0), tl.sum(x * dy))


class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, w = ctx.saved_tensors
        dy = dy.contiguous()
        programs = triton.cdiv(x.numel(), 64)
        partials = torch.empty(programs, device=x.device)
        partials_kernel[(programs,)](x, dy, partials, x.numel(), BLOCK=64)
        return w * dy, partials.sum().to(w.dtype)


mended = prove(Mended.apply, (x, w), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, w))}")
print(f"opcheck: {opcheck(Broken.apply, (x, w))}")
