"""A launch into a tensor that has a grad_fn: the values change, the gradient does not."""

# %% launch-into
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def tenfold_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, 10 * x, mask=offsets < n)


x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)
y = x.clone()
tenfold_kernel[(1,)](x, y, 3, BLOCK=4)
print("y:", y.tolist())
print("y.grad_fn:", y.grad_fn.name())
(dx,) = torch.autograd.grad(y.sum(), x)
print("dx:", dx.tolist())
