"""torch's own layer norm as a reference: at the kernel's dtype, and in fp32, against fp64."""
# needs: torch

# %% layer-norm
import torch
import torch.nn.functional as F


def gradient(x, dy):
    leaf = x.clone().requires_grad_()
    y = F.layer_norm(leaf, leaf.shape[-1:])
    return torch.autograd.grad(y, leaf, dy)[0].double()


torch.manual_seed(0)
x = (torch.randn(4, 64) + 100).bfloat16()  # on a CPU, even where there is a GPU
dy = torch.randn(4, 64).bfloat16()
exact = gradient(x.double(), dy.double())
for dtype in (torch.float32, torch.bfloat16):
    off = float((gradient(x.to(dtype), dy.to(dtype)) - exact).abs().max() / exact.abs().max())
    print(f"{dtype}: off by less than two roundings of bfloat16: {off < 2 * 2**-8}")
