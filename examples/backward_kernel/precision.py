"""Half precision is for storing: arithmetic in fp32, a store in the pointer's own dtype."""

# %% setup
import math

import numpy
import torch
import triton
import triton.language as tl

from gradkernels.gelu import gelu_backward

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)

# %% arithmetic
x = torch.randn(4096, device=device).half()
dy = torch.randn(4096, device=device).half()


def derivative(x):
    cdf = 0.5 * (1 + torch.erf(x / math.sqrt(2)))
    pdf = torch.exp(-0.5 * x * x) / math.sqrt(2 * math.pi)
    return cdf + x * pdf


slope = derivative(x.double())
rounded_once = (dy.double() * slope).half()
missed = gelu_backward(dy, x) != rounded_once
print("differ from the exact result rounded once, of", x.numel(), "gradients:")
print("every step in fp16:", (dy * derivative(x) != rounded_once).sum().item())
print("steps in fp32:", missed.sum().item())
print("of these with a slope below 0.01:", (missed & (slope.abs() < 0.01)).sum().item())


# %% kernels
@triton.jit
def times_two_backward_fp16_kernel(dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dy = tl.load(dy_ptr + offsets, mask=offsets < n)
    tl.store(dx_ptr + offsets, (2 * dy).to(tl.float16), mask=offsets < n)


@triton.jit
def times_two_backward_kernel(dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    dy = tl.load(dy_ptr + offsets, mask=offsets < n)
    tl.store(dx_ptr + offsets, 2 * dy, mask=offsets < n)


dy = torch.tensor([1e-9, 0.1, 65536.0], device=device)

# %% hard-wired
dx = torch.empty_like(dy)
with numpy.errstate(over="ignore"):  # in the interpreter NumPy would warn of the inf below
    times_two_backward_fp16_kernel[(1,)](dy, dx, 3, BLOCK=4)
print(dx.dtype, dx.tolist())

# %% own-dtype
times_two_backward_kernel[(1,)](dy, dx, 3, BLOCK=4)
print(dx.dtype, dx.tolist())
