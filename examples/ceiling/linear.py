# needs: gpu 80GB
# time limit: 120 s
"""Linear beside cuBLAS: one product forward, two backward, and the sum for the bias."""

# %% setup
import random
import warnings

import torch
import torch.nn.functional as F
from triton.testing import do_bench

from gradkernels.linear import linear, linear_backward

random.seed(0)
torch.manual_seed(0)
# A backward thread that begins with cuBLAS finds no CUDA context, takes one, and says so.
warnings.filterwarnings("ignore", "Attempting to run cuBLAS")


def normal(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


def seconds(f):
    return do_bench(f, return_mode="median") / 1e3


def near(size):
    return 8 * round(random.uniform(0.75, 1.25) * size / 8)


# tokens, in, out: a feed-forward layer, and two shapes at random near it
LAYER = (8192, 4096, 14336)
SHAPES = {
    "layer": LAYER,
    "near 1": tuple(map(near, LAYER)),
    "near 2": tuple(map(near, LAYER)),
}

# %% agreement
x, w, b, dy = normal(1000, 700), normal(900, 700), normal(900), normal(1000, 900)
for inputs, name in (((x, w, b), "contiguous"), ((x, w.t().contiguous().t(), b), "transposed")):
    exact = [t.double().requires_grad_() for t in inputs]
    want = torch.autograd.grad(F.linear(*exact), exact, dy.double())
    ours = [t.requires_grad_() for t in inputs]
    got = torch.autograd.grad(linear(*ours), ours, dy)
    worst = max((g.double() - e).norm() / e.norm() for g, e in zip(got, want, strict=True))
    # The sums are fp32; what is left is the rounding of the results to bf16, at most 2⁻⁸ each.
    print(f"gradients within a bf16 rounding, {name}: {bool(worst < 2**-8)}")


# %% table tags=["measured"]
def times(x, w, dy):
    """Ours and cuBLAS's, product by product."""
    calls = {
        "forward": (lambda: linear(x, w), lambda: F.linear(x, w)),
        "dX": (lambda: linear_backward(dy, x, w, True, False, False), lambda: dy @ w),
        "dW": (lambda: linear_backward(dy, x, w, False, True, False), lambda: dy.t() @ x),
    }
    taken = {what: [seconds(f) for f in pair] for what, pair in calls.items()}
    return taken | {"backward": [sum(pair) for pair in zip(taken["dX"], taken["dW"], strict=True)]}


for name, (tokens, n, out) in SHAPES.items():
    print(f"{name}: {tokens}x{n}x{out}")
    measured = times(normal(tokens, n), normal(out, n), normal(tokens, out))
    for what, (ours, cublas) in measured.items():
        work = 2 * tokens * n * out * (2 if what == "backward" else 1) / 1e12
        print(f"{name} {what}: {work / ours:.0f} TFLOP/s")
        print(f"{name} {what} cuBLAS: {work / cublas:.0f} TFLOP/s")
        print(f"{name} {what} times cuBLAS: {cublas / ours:.2f}")

# %% bias tags=["measured"]
tokens, n, out = LAYER
x, w, dy = normal(tokens, n), normal(out, n), normal(tokens, out)
db = seconds(lambda: linear_backward(dy, x, w, False, False, True))
print(f"db: {dy.nbytes / db / 1e9:.0f} GB/s")
