"""A Function of three methods: forward, setup_context, backward."""

# %% scaled-power
import torch

from gradkernels.gelu import gelu_backward, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"


class ScaledPower(torch.autograd.Function):
    """y = w xᵖ, of two tensors and an integer."""

    @staticmethod
    def forward(x, w, p):
        return w * x**p

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, p = inputs
        ctx.save_for_backward(x, w)
        ctx.p = p

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return dy * w * ctx.p * x ** (ctx.p - 1), dy * x**ctx.p, None


x = torch.tensor([3.0], device=device, requires_grad=True)
w = torch.tensor([5.0], device=device, requires_grad=True)
ScaledPower.apply(x, w, 2).backward()
print("dx:", x.grad.item())
print("dw:", w.grad.item())


# %% all-inputs
class SavesAllInputs(ScaledPower):
    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


try:
    SavesAllInputs.apply(x, w, 2)
except TypeError as error:
    print(f"TypeError: {error}")
else:
    raise AssertionError("an integer was saved as a tensor")


# %% layout
class TritonGELU(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return gelu_forward(x.contiguous())

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return gelu_backward(dy, x.contiguous())


x = torch.tensor([[-1.0, 7.0], [0.5, 7.0], [2.0, 7.0]], device=device)[:, ::2].requires_grad_()
dy = torch.tensor([[3.0], [-1.0], [0.5]], device=device)
y, reference = TritonGELU.apply(x), torch.nn.functional.gelu(x)
(dx,), (torchs_dx,) = (torch.autograd.grad(out, x, dy) for out in (y, reference))
print("x.stride():", x.stride())
print("same forward:", torch.allclose(y, reference, atol=1e-6))
print("same gradient:", torch.allclose(dx, torchs_dx, atol=1e-6))
