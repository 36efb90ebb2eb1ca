# needs: torch
"""Where the right dx of RMSNorm has a part along x after all: where eps is not small beside x²."""

# %% right-dx
import torch

EPS = 1e-6


def cosine(a, b):
    return ((a * b).sum(dim=1) / (a.norm(dim=1) * b.norm(dim=1))).abs().max().item()


def right_dx(x, w, dy):
    """dx by torch, at the dtype of x; and its cosine with x, taken in fp64."""
    x = x.clone().requires_grad_()
    torch.nn.functional.rms_norm(x, w.shape, w, EPS).backward(dy)
    return x.grad, cosine(x.grad.double(), x.detach().double())


torch.manual_seed(0)
x, dy, w = (torch.randn(shape, dtype=torch.float64) for shape in ((6, 50), (6, 50), (50,)))

# %% small-x
for scale in (1, 0.03, 0.01):
    print(f"fp64, x times {scale}: passes: {right_dx(scale * x, w, dy)[1] < 1e-4}")

# %% what-is-left
small = 0.01 * x
dx, _ = right_dx(small, w, dy)
m = small.square().mean(dim=1)
left = (m + EPS) ** -0.5 * (w * dy * small).sum(dim=1) * EPS / (m + EPS)
print(f"dx · x as the formula says: {torch.allclose((dx * small).sum(dim=1), left)}")

# %% other-alarms
half = right_dx(*(t.bfloat16() for t in (x, w, dy)))[1]
print(f"bf16: passes: {half < 1e-4}")
column = right_dx(x[:, :1], w[:1], dy[:, :1])[1]
print(f"d = 1: passes: {column < 1e-4}")
