"""allclose needs a truth and a tolerance, and both are easy to choose wrongly."""

# %% setup
import torch
import torch.nn.functional as F

from gradkernels.gelu import gelu

device = "cuda" if torch.cuda.is_available() else "cpu"


def gradient(op, x, dy):
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(op(leaf), leaf, dy.to(x.dtype))[0]


torch.manual_seed(0)
x = torch.linspace(-3, 3, 96, device=device)
dy = torch.randn(96, device=device)

# %% same-dtype
for dtype in (torch.float32, torch.bfloat16):
    ours, torchs = gradient(gelu, x.to(dtype), dy), gradient(F.gelu, x.to(dtype), dy)
    print(f"{dtype}: allclose is {torch.allclose(ours, torchs)}")


# %% against-fp64
def off_by(dx, exact):
    return float((dx.double() - exact).abs().max() / exact.abs().max())


low = x.to(torch.bfloat16)
exact = gradient(F.gelu, low.double(), dy.to(torch.bfloat16))
ours = off_by(gradient(gelu, low, dy), exact)
torchs = off_by(gradient(F.gelu, low, dy), exact)
print(f"off by less than one rounding of bfloat16: {ours < 2**-8}")
print(f"no further off than twice torch: {ours < 2 * torchs}")


# %% too-generous
def forgetful(x):
    return gelu(x) + 0.001 * x  # off by 0.001·dy, everywhere


dx = gradient(forgetful, x, dy)
exact = gradient(F.gelu, x.double(), dy)
for atol in (1e-2, 1e-4):
    print(f"atol={atol:g}: allclose is {torch.allclose(dx.double(), exact, atol=atol)}")
