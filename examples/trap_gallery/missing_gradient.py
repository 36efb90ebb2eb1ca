"""The bias gets None: no error, and it never trains."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bias):
        return x + bias

    @staticmethod
    def backward(ctx, dy):
        return dy, None


# %% wrong
torch.manual_seed(0)
x = torch.randn(4, 6, device=device)
bias = torch.zeros(6, device=device, requires_grad=True)
optimiser = torch.optim.SGD([bias], lr=0.1)
for _ in range(3):
    optimiser.zero_grad()
    (Broken.apply(x.requires_grad_(), bias) - 1).square().sum().backward()
    optimiser.step()
print(f"after 3 steps the bias has moved: {bool((bias != 0).any())}")

# %% proof
report = prove(Broken.apply, (x, bias), reference=torch.add)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        return dy, dy.sum(0)


mended = prove(Mended.apply, (x, bias), reference=torch.add)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, bias))}")
print(f"opcheck: {opcheck(Broken.apply, (x, bias))}")
