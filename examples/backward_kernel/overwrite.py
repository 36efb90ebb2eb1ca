"""dx written over dy saves a tensor and breaks the branch beside it."""

# %% setup
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def square_backward_kernel(dy_ptr, x_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dy = tl.load(dy_ptr + offsets, mask=offsets < n)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(dx_ptr + offsets, 2 * x * dy, mask=offsets < n)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, over_dy):
        ctx.save_for_backward(x)
        ctx.over_dy = over_dy
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dy = dy.contiguous()
        dx = dy if ctx.over_dy else torch.empty_like(x)
        square_backward_kernel[(1,)](dy, x, dx, x.numel(), BLOCK=4)
        return dx, None


def gradients(over_dy):
    """The gradients of a residual connection, a + b², with respect to a and b."""
    a = torch.tensor([1.0, 1.0, 1.0], device=device, requires_grad=True)
    b = torch.tensor([5.0, 6.0, 7.0], device=device, requires_grad=True)
    # Times one on either side: dy is then a tensor of its own, and a's branch reads it last.
    sum_of_both = a * 1 + Square.apply(b, over_dy)
    (sum_of_both * torch.ones_like(a)).sum().backward()
    return a.grad.tolist(), b.grad.tolist()


# %% over-dy
da, db = gradients(over_dy=True)
print("da:", da)
print("db:", db)

# %% own-memory
da, db = gradients(over_dy=False)
print("da:", da)
print("db:", db)
