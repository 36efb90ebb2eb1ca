"""The node of lesson 1 with a kernel in its backward: one line changes."""

# %% setup
import math

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from gradkernels.gelu import gelu_backward, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% placeholder
class TorchBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        return gelu_forward(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
        return dy * (cdf + x * pdf)


# %% kernel
class KernelBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        x = x.contiguous()
        ctx.save_for_backward(x)
        return gelu_forward(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return gelu_backward(dy, x)


# %% gradients
def gradient(function):
    x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)
    function.apply(x).backward(torch.tensor([1.0, 10.0, 100.0], device=device))
    return x.grad


print("torch arithmetic:", gradient(TorchBackward))
print("kernel:", gradient(KernelBackward))
print("same:", torch.allclose(gradient(KernelBackward), gradient(TorchBackward), rtol=1e-5))


# %% operations
class Recorder(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.names.append(operation.overloadpacket.__name__)
        return operation(*args, **(kwargs or {}))


x = torch.ones(3, device=device, requires_grad=True)
y = TorchBackward.apply(x)
with Recorder() as recorder:
    torch.autograd.grad(y, x, torch.ones_like(y))
launches = [name for name in recorder.names if name not in ("ones_like", "detach")]
print(len(launches), "operations:", " ".join(launches))
