"""Trap 2: the tensor that backward reads is not the tensor that forward saw."""

# %% kernels
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def scale_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, tl.load(w_ptr) * x, mask=offsets < n)


def scale(x, w):
    y = torch.empty_like(x)
    scale_kernel[(1,)](x, w, y, x.numel(), BLOCK=4)
    return y


# %% on-ctx
class OnCtx(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.w = w
        return scale(x, w)

    @staticmethod
    def backward(ctx, dy):
        return scale(dy.contiguous(), ctx.w), None


x = torch.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
w = torch.tensor(2.0, device=device)
y = OnCtx.apply(x, w)
w.mul_(10)  # for instance an optimiser step between forward and backward
y.sum().backward()
print(f"dx: {x.grad.tolist()}  (w was 2 in the forward)")


# %% saved
class Saved(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(w)
        return scale(x, w)

    @staticmethod
    def backward(ctx, dy):
        (w,) = ctx.saved_tensors
        return scale(dy.contiguous(), w), None


w = torch.tensor(2.0, device=device)
y = Saved.apply(x, w)
w.mul_(10)
try:
    y.sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("the mutation was not seen")

# %% mended
x.grad = None
w = torch.tensor(2.0, device=device)
y = Saved.apply(x, w)
y.sum().backward()
w.mul_(10)
print(f"dx: {x.grad.tolist()}")

# %% blind
x.grad = None
w = torch.tensor(2.0, device=device)
ten = torch.tensor(10.0, device=device)
y = Saved.apply(x, w)
scale_kernel[(1,)](w, ten, w, 1, BLOCK=1)
y.sum().backward()
print(f"w after the kernel: {w.item()}")
print(f"dx: {x.grad.tolist()}  (no error)")
