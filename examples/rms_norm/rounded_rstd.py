# needs: torch
"""A rounded rstd is one error for a whole row: it does not average out, as those of elements do."""

# %% error
import torch

torch.manual_seed(0)
rows, d, EPS = 64, 4096, 1e-6
x, dy = (torch.randn(rows, d, dtype=torch.float64) for _ in range(2))
w = torch.randn(d, dtype=torch.float64)
rstd = torch.rsqrt(x.square().mean(dim=1, keepdim=True) + EPS)


def dx_with(rstd):
    x_hat = x * rstd
    return rstd * (w * dy - x_hat * (w * dy * x_hat).mean(dim=1, keepdim=True))


right = dx_with(rstd)


def report(name, dx):
    off = (dx - right).norm() / right.norm()
    length = (dx.norm(dim=1) / right.norm(dim=1) - 1).square().mean().sqrt()
    print(f"{name}: dx off by {off:.0e}, length of a row by {length:.0e}")


report("rstd in fp32", dx_with(rstd.float().double()))
report("rstd in bf16", dx_with(rstd.bfloat16().double()))
report("dx in bf16", right.bfloat16().double())
