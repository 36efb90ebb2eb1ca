"""The row sum runs over a whole block: without a mask it takes in whatever follows the row."""

# %% broken
import warnings

import torch
import triton
import triton.language as tl

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def softmax_backward_kernel(y_ptr, dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    y = tl.load(y_ptr + row * n + columns).to(tl.float32)
    dy = tl.load(dy_ptr + row * n + columns).to(tl.float32)
    tl.store(dx_ptr + row * n + columns, y * (dy - tl.sum(y * dy)), mask=columns < n)


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.softmax(x, -1).contiguous()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        (y,) = ctx.saved_tensors
        dx, dy, n = torch.empty_like(y), dy.contiguous(), y.shape[-1]
        if y.numel():
            block = triton.next_power_of_2(n)
            softmax_backward_kernel[(y.numel() // n,)](y, dy, dx, n, BLOCK=block)
        return dx


def reference(x):
    return torch.softmax(x, -1)


# %% wrong
warnings.simplefilter("ignore")  # of numpy: behind the last row may stand anything, NaN too
torch.manual_seed(0)
padded, upstream = torch.ones(2, 5, 16, device=device).unbind()  # rows to spare after the fourth
x = torch.randn(4, 12, device=device).requires_grad_()
(dx,) = torch.autograd.grad(Broken.apply(x), x, upstream[:4, :12])
(expected,) = torch.autograd.grad(reference(x), x, upstream[:4, :12])
print(f"the first row is right: {torch.allclose(dx[0], expected[0], atol=1e-6)}")

# %% proof
report = prove(Broken.apply, (x,), reference=reference)
print(report)


# %% mended
@triton.jit
def mended_kernel(y_ptr, dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    y = tl.load(y_ptr + row * n + columns, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + row * n + columns, mask=mask, other=0.0).to(tl.float32)
    tl.store(dx_ptr + row * n + columns, y * (dy - tl.sum(y * dy)), mask=mask)


class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        (y,) = ctx.saved_tensors
        dx, dy, n = torch.empty_like(y), dy.contiguous(), y.shape[-1]
        if y.numel():
            block = triton.next_power_of_2(n)
            mended_kernel[(y.numel() // n,)](y, dy, dx, n, BLOCK=block)
        return dx


mended = prove(Mended.apply, (x,), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
