"""What torch.func asks of a Function: the style with three methods, and no launch in backward."""

# %% two-methods
import torch

from gradkernels.gelu import gelu, gelu_backward, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"


class TwoMethods(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return 2 * x * dy


x = torch.tensor(3.0, device=device)
try:
    torch.func.grad(TwoMethods.apply)(x)
except RuntimeError as error:
    print(f"RuntimeError: {str(error).split('. ')[0]}")
else:
    raise AssertionError("torch.func took a Function without setup_context")


# %% three-methods
class ThreeMethods(TwoMethods):
    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)


print("gradient:", torch.func.grad(ThreeMethods.apply)(x).item())


# %% launch
class Launches(ThreeMethods):
    @staticmethod
    def forward(x):
        return gelu_forward(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return gelu_backward(dy, x)


try:
    torch.func.grad(Launches.apply)(x)
except Exception as error:
    print(f"{type(error).__name__}: {str(error).splitlines()[-1]}")
else:
    raise AssertionError("a kernel was launched on wrappers")

# %% library
dx, torchs_dx = (torch.func.grad(f)(x) for f in (gelu, torch.nn.functional.gelu))
print("same gradient:", torch.allclose(dx, torchs_dx, atol=1e-6))
