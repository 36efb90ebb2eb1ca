"""An autotuner tries its candidates on the real buffers: each trial of this kernel adds to dw."""
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


best_block = {}


def tuned_backward(x, dy, dw):
    # What @triton.autotune does when it meets a new key: run every candidate, keep the fastest.
    n = x.numel()
    if n not in best_block:
        for block in (64, 128):
            scale_backward_kernel[(triton.cdiv(n, block),)](x, dy, dw, n, BLOCK=block)
        best_block[n] = 64
    scale_backward_kernel[(triton.cdiv(n, best_block[n]),)](x, dy, dw, n, BLOCK=best_block[n])


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
        dw = torch.zeros((), device=x.device)
        tuned_backward(x, dy.contiguous(), dw)
        return w * dy, dw.to(w.dtype)


def reference(x, w):
    return w * x


# %% wrong
torch.manual_seed(0)
x = torch.randn(20, device=device).requires_grad_()
w = torch.tensor(1.5, device=device, requires_grad=True)

for call in (1, 2):
    _, dw = torch.autograd.grad(Broken.apply(x, w).sum(), (x, w))
    print(f"call {call}: dw is {float(dw / x.detach().sum()):.3f} times the sum")

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
