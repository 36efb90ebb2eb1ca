"""gradcheck brings its own truth: it moves each input a little and looks at the output."""

# %% setup
import warnings

import torch
from torch.autograd import gradcheck

from gradkernels.gelu import gelu, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.linspace(-2, 2, 12, device=device, dtype=torch.float64, requires_grad=True)

# %% passes
print(f"gradcheck: {gradcheck(gelu, (x,))}")

# %% single-precision
single = x.detach().float().requires_grad_()
with warnings.catch_warnings(record=True) as caught:
    try:
        gradcheck(gelu, (single,))
    except RuntimeError as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[0]}")
    else:
        raise AssertionError("single precision was precise enough")
print(f"warning: {str(caught[0].message).split('. ')[0]}")


# %% two-matrices
class NoDensity(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return gelu_forward(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy * (1 + torch.erf(x / 2**0.5)) / 2


three = x.detach()[:3].requires_grad_()
try:
    gradcheck(NoDensity.apply, (three,))
except RuntimeError as error:
    print(f"{type(error).__name__}: {error}")
else:
    raise AssertionError("half a derivative passed")

# %% cost
calls = 0


def counted(x):
    global calls
    calls += 1
    return gelu(x)


for n in (3, 12):
    calls = 0
    gradcheck(counted, (x.detach()[:n].requires_grad_(),))
    print(f"calls for {n} elements: {calls}")
