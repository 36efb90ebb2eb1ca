"""An op of torch's own, with a weight that is a column of a matrix."""
# needs: torch

# %% setup
import torch
import torch.nn.functional as F

from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
x, dy = torch.randn(2, 8, 6, device=device)
column = torch.randn(6, 2, device=device)[:, 0]


def batch_norm(x, weight):
    return F.batch_norm(x, None, None, weight, training=True)


def formula(x, weight):
    centred = x - x.mean(0)
    return weight * centred / (centred.square().mean(0) + 1e-5).sqrt()


# %% gradient
leaf = x.clone().requires_grad_()
for op in (batch_norm, formula):
    y, same_y = op(leaf, column), op(leaf, column.contiguous())
    dx, same_dx = (torch.autograd.grad(out, leaf, dy)[0] for out in (y, same_y))
    print(f"{op.__name__}: with the weight contiguous and as a column")
    print(f"  the outputs agree: {torch.allclose(y, same_y, atol=1e-5)}")
    print(f"  the gradients agree: {torch.allclose(dx, same_dx, atol=1e-4)}")

# %% report
print(prove(batch_norm, (x, column), reference=formula, probes=["values", "layouts"]))
