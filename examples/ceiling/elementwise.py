# needs: gpu 80GB
# time limit: 300 s
"""GELU and scaled SiLU beside their peers, and beside the least that the memory can do."""

# %% setup
import torch
import torch.nn.functional as F

from _timing import leaf, rates, seconds
from gradkernels.gelu import gelu
from gradkernels.scaled_silu import scaled_silu

torch.manual_seed(0)
N = 2**27


# %% table tags=["measured"]
OPERATIONS = {
    "gelu": (gelu, F.gelu, [leaf(N)]),
    "scaled_silu": (scaled_silu, lambda x, w: w * F.silu(x), [leaf(N), leaf()]),
}
dy, out = torch.randn(2, N, device="cuda", dtype=torch.bfloat16)
for name, (op, counterpart, inputs) in OPERATIONS.items():
    x = inputs[0].detach()
    add = 3 * x.nbytes / seconds(lambda x=x: torch.add(x, dy, out=out)) / 1e9
    forward, backward = rates(op, inputs, dy)
    print(f"{name} add: {add:.0f} GB/s")
    print(f"{name} forward: {forward:.0f} GB/s")
    print(f"{name} backward: {backward:.0f} GB/s")
    print(f"{name} share of add: {backward / add:.2f}")
    for peer, f in (("eager", counterpart), ("compile", torch.compile(counterpart))):
        peer_forward, peer_backward = rates(f, inputs, dy)
        print(f"{name} forward, times {peer}: {forward / peer_forward:.2f}")
        print(f"{name} backward, times {peer}: {backward / peer_backward:.2f}")
