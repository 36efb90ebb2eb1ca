# needs: gpu 80GB
# time limit: 120 s
"""Attention beside PyTorch's own: FlashAttention-2 and cuDNN."""

# %% setup
import random
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.testing import do_bench

from gradkernels.attention import attention

random.seed(0)
torch.manual_seed(0)
# A backward thread that begins with cuBLAS finds no CUDA context, takes one, and says so.
warnings.filterwarnings("ignore", "Attempting to run cuBLAS")
PEERS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}


def normal(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def sdpa(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def near(size, step=1):
    return step * round(random.uniform(0.75, 1.25) * size / step)


# B, H, S, D: a long context, and two shapes at random near it
SHAPES = {
    "context": (4, 32, 4096, 128),
    "near 1": (near(4), near(32), near(4096, 8), 128),
    "near 2": (near(4), near(32), near(4096, 8), 128),
}


def seconds(op, q, k, v, causal, do):
    """Median times of forward and of backward."""
    o = op(q, k, v, causal)
    backward = do_bench(
        lambda: torch.autograd.grad(o, (q, k, v), do, retain_graph=True), return_mode="median"
    )
    with torch.no_grad():
        forward = do_bench(lambda: op(q, k, v, causal), return_mode="median")
    return forward / 1e3, backward / 1e3


# %% agreement
q, k, v, do = (normal(2, 8, 1000, 128) for _ in range(4))
for causal in (True, False):
    exact = [t.double().requires_grad_() for t in (q, k, v)]
    want = torch.autograd.grad(sdpa(*exact, causal), exact, do.double())
    ours = [t.requires_grad_() for t in (q, k, v)]
    got = torch.autograd.grad(attention(*ours, causal), ours, do)
    worst = max((g.double() - e).norm() / e.norm() for g, e in zip(got, want, strict=True))
    again = torch.autograd.grad(attention(*ours, causal), ours, do)
    name = "causal" if causal else "full"
    # P and dS are rounded to bf16 before they are multiplied, and the results once more.
    print(f"{name} gradients within a few bf16 roundings: {bool(worst < 2**-6)}")
    print(f"{name} gradients the same bits again: {all(map(torch.equal, got, again))}")

# %% table tags=["measured"]
for name, shape in SHAPES.items():
    B, H, S, D = shape
    q, k, v = (normal(*shape).requires_grad_() for _ in range(3))
    do = normal(*shape)
    print(f"{name}: {B}x{H}x{S}x{D}")
    for causal in (True, False):
        # Two products forward and five backward; the causal half of the scores is counted.
        work = 4 * B * H * S * S * D / (2 if causal else 1) / 1e12
        row = f"{name} {'causal' if causal else 'full'}"
        forward, backward = seconds(attention, q, k, v, causal, do)
        print(f"{row} forward: {work / forward:.0f} TFLOP/s")
        print(f"{row} backward: {2.5 * work / backward:.0f} TFLOP/s")
        for peer, backend in PEERS.items():
            with sdpa_kernel(backend):
                peer_forward, peer_backward = seconds(sdpa, q, k, v, causal, do)
            print(f"{row} forward {peer}: {work / peer_forward:.0f} TFLOP/s")
            print(f"{row} backward {peer}: {2.5 * work / peer_backward:.0f} TFLOP/s")
            print(f"{row} forward times {peer}: {peer_forward / forward:.2f}")
            print(f"{row} backward times {peer}: {peer_backward / backward:.2f}")
