"""The running sum is kept in x's dtype: past some length an fp16 sum stands still."""
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
    total = tl.zeros([1], dtype=x_ptr.dtype.element_ty)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
        total += tl.sum(x * dy).to(x_ptr.dtype.element_ty)
    tl.store(dw_ptr + tl.arange(0, 1), total)


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
        dw, dy = torch.empty_like(w), dy.contiguous()
        scale_backward_kernel[(1,)](x, dy, dw, x.numel(), BLOCK=8)
        return w * dy, dw


def reference(x, w):
    return w * x


# %% wrong
w = torch.tensor(1.5, device=device, dtype=torch.float16, requires_grad=True)
for n in (200, 2000, 20000):
    x = torch.full((n,), 0.015, device=device, dtype=torch.float16)
    (dw,) = torch.autograd.grad(Broken.apply(x, w).sum(), w)
    print(f"{n} times 0.015: dw is {float(dw):g}")
x = torch.linspace(-2, 2, 96, device=device, dtype=torch.float16).requires_grad_()

# %% proof
report = prove(Broken.apply, (x, w), reference=reference)
print(report)


# %% mended
@triton.jit
def mended_kernel(x_ptr, dy_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros([1], dtype=tl.float32)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
        total += tl.sum(x * dy).to(tl.float32)
    tl.store(dw_ptr + tl.arange(0, 1), total)


class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, w = ctx.saved_tensors
        dw, dy = torch.empty_like(w), dy.contiguous()
        mended_kernel[(1,)](x, dy, dw, x.numel(), BLOCK=8)
        return w * dy, dw


mended = prove(Mended.apply, (x, w), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, w))}")
print(f"opcheck: {opcheck(Broken.apply, (x, w))}")
