"""A backward that reads dy with x's strides passes gradcheck and is wrong after .t()."""

# %% setup
import torch
import torch.nn.functional as F
import triton
from torch.autograd import gradcheck

from gradkernels.gelu import gelu, gelu_backward_kernel, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% strideless
class Strideless(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return gelu_forward(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        gelu_backward_kernel[(triton.cdiv(x.numel(), 64),)](dy, x, dx, x.numel(), 64)
        return dx


def strideless(x):
    return Strideless.apply(x.contiguous())


# %% gradcheck
x = torch.linspace(-2, 2, 12, device=device, dtype=torch.float64).view(3, 4).requires_grad_()
print(f"gradcheck: {gradcheck(strideless, (x,))}")

# %% transposed
dy = torch.arange(12.0, device=device, dtype=torch.float64).view(4, 3)
for op in (strideless, gelu, F.gelu):
    (dx,) = torch.autograd.grad(op(x).t(), x, dy)
    print([round(value, 3) for value in dx[1].tolist()])


# %% layouts
def strides_of_dy(loss):
    seen = []
    y = gelu(x)
    y.register_hook(lambda dy: seen.append(dy.stride()))
    loss(y).backward()
    return seen[0]


weights = torch.arange(12.0, device=device, dtype=torch.float64)
print(f"square: {strides_of_dy(lambda y: y.square().sum())}")
print(f"t, flatten: {strides_of_dy(lambda y: y.t().flatten() @ weights)}")
print(f"sum: {strides_of_dy(torch.Tensor.sum)}")
