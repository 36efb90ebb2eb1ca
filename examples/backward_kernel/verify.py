"""The gradient held against fp64, against torch at the same dtype, and against gradcheck."""

# %% setup
import torch

from gradkernels.gelu import gelu

device = "cuda" if torch.cuda.is_available() else "cpu"


def gradient(function, x, dy):
    x = x.detach().requires_grad_()
    (dx,) = torch.autograd.grad(function(x), x, dy)
    return dx


# %% fp64
torch.manual_seed(0)
for dtype in (torch.float16, torch.bfloat16, torch.float32):
    x = torch.randn(5003).to(device, dtype)
    dy = torch.randn(5003).to(device, dtype)
    exact = gradient(torch.nn.functional.gelu, x.double(), dy.double())
    # One step of the dtype, for the store; in fp32 the arithmetic adds a few of the same size.
    allowed = torch.finfo(dtype).eps * (4 if dtype == torch.float32 else 1)
    error = (gradient(gelu, x, dy).double() - exact).abs() / (exact.abs() + dy.abs())
    print(f"{dtype}: within {allowed:.1e}: {(error <= allowed).all().item()}")

# %% torch
for n in (0, 1, 1023, 1024, 1025, 4095, 4096, 4097, 2**16 + 1):
    x = torch.randn(n, device=device)
    dy = torch.randn(n, device=device)
    same = torch.allclose(
        gradient(gelu, x, dy), gradient(torch.nn.functional.gelu, x, dy), rtol=1e-5, atol=1e-6
    )
    print(f"n = {n}: {same}")

# %% gradcheck
x = torch.randn(3, 5, dtype=torch.float64, device=device, requires_grad=True)
print("gradcheck:", torch.autograd.gradcheck(gelu, x))
