"""A wrong forward whose backward matches it is right in every way but against a reference."""
# needs: torch

# %% broken
import torch
import torch.nn.functional as F

from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class SteepSiLU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * torch.sigmoid(2 * x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(2 * x)
        return dy * s * (1 + 2 * x * (1 - s))


# %% proof
torch.manual_seed(0)
x = torch.randn(4, 6, device=device)
for reference in (None, F.silu):
    report = prove(SteepSiLU.apply, (x,), reference=reference, probes=["values"])
    against = "itself" if reference is None else reference.__name__
    print(f"against {against}: {', '.join(report.traps) or 'no trap'}")
