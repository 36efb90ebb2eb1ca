# needs: gpu 80GB
# time limit: 120 s
"""Attention beside PyTorch's own: FlashAttention-2 and cuDNN."""

# %% setup
import warnings

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from triton.testing import do_bench

from gradkernels.attention import attention

torch.manual_seed(0)
# A backward thread that begins with cuBLAS finds no CUDA context, takes one, and says so.
warnings.filterwarnings("ignore", "Attempting to run cuBLAS")
# B, H, S, D: the shape of the target, two at random near it, and smaller heads
SHAPES = [(4, 32, 4096, 128), (3, 24, 5000, 128), (6, 20, 3700, 128), (4, 32, 4096, 64)]
PEERS = {"flash": SDPBackend.FLASH_ATTENTION, "cuDNN": SDPBackend.CUDNN_ATTENTION}


def normal(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)


def sdpa(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


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
def rough(t, exact):
    """Whether errors stay within a few bf16 roundings, by which P and dS are off as well."""
    return bool((t.double() - exact).norm() / exact.norm() < 2**-6)


for Sq, Sk, causal in ((513, 300, False), (300, 513, True), (1000, 1000, True)):
    q, k, v = normal(2, 3, Sq, 128), normal(2, 3, Sk, 128), normal(2, 3, Sk, 128)
    do = torch.randn_like(q)
    exact = [t.detach().double().requires_grad_() for t in (q, k, v)]
    want = torch.autograd.grad(sdpa(*exact, causal), exact, do.double())
    got = torch.autograd.grad(attention(q, k, v, causal), (q, k, v), do)
    agree = all(rough(g, e) for g, e in zip(got, want, strict=True))
    again = torch.autograd.grad(attention(q, k, v, causal), (q, k, v), do)
    same = all(map(torch.equal, got, again))
    print(f"Sq={Sq} Sk={Sk} causal={causal}: gradients agree {agree}, same bits again {same}")

# %% table tags=["measured"]
for shape in SHAPES:
    B, H, S, D = shape
    q, k, v, do = (normal(*shape) for _ in range(4))
    do = do.detach()
    for causal in (True, False):
        # Two products forward and five backward; the causal half of the scores is counted.
        work = 4 * B * H * S * S * D / (2 if causal else 1) / 1e12
        row = f"{B}x{H}x{S}x{D} {'causal' if causal else 'full'}"
        forward, backward = seconds(attention, q, k, v, causal, do)
        print(f"{row} forward: {work / forward:.0f} TFLOP/s")
        print(f"{row} backward: {2.5 * work / backward:.0f} TFLOP/s")
        for peer, backend in PEERS.items():
            with sdpa_kernel(backend):
                theirs = seconds(sdpa, q, k, v, causal, do)
            print(f"{row} {peer} forward: {work / theirs[0]:.0f} TFLOP/s")
            print(f"{row} {peer} backward: {2.5 * work / theirs[1]:.0f} TFLOP/s")
            print(f"{row} forward, times {peer}: {theirs[0] / forward:.2f}")
            print(f"{row} backward, times {peer}: {theirs[1] / backward:.2f}")
