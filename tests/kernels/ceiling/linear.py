# needs: gpu 80GB
# time limit: 120 s
"""Linear beside cuBLAS: one product forward, two backward, and the sum for the bias."""

# %% setup
import warnings

import torch
import torch.nn.functional as F
from triton.testing import do_bench

from gradkernels.linear import linear, linear_backward

torch.manual_seed(0)
# A backward thread that begins with cuBLAS finds no CUDA context, takes one, and says so.
warnings.filterwarnings("ignore", "Attempting to run cuBLAS")
# tokens, in, out: the shape of the target, and two at random near it
SHAPES = [(8192, 4096, 14336), (7000, 5120, 13000), (9728, 3600, 15000)]


def seconds(f):
    return do_bench(f, return_mode="median") / 1e3


def normal(*shape):
    return torch.randn(shape, device="cuda", dtype=torch.bfloat16)


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
def compare(tokens, n, out):
    x, w, dy = normal(tokens, n), normal(out, n), normal(tokens, out)
    calls = {
        "forward": (lambda: linear(x, w), lambda: F.linear(x, w)),
        "dX": (lambda: linear_backward(dy, x, w, True, False, False), lambda: dy @ w),
        "dW": (lambda: linear_backward(dy, x, w, False, True, False), lambda: dy.t() @ x),
    }
    taken = {what: [seconds(f) for f in pair] for what, pair in calls.items()}
    taken["backward"] = [sum(pair) for pair in zip(taken["dX"], taken["dW"], strict=True)]
    for what, (ours, cublas) in taken.items():
        work = 2 * tokens * n * out * (2 if what == "backward" else 1) / 1e12
        row = f"{tokens}x{n}x{out} {what}"
        print(f"{row}: {work / ours:.0f} TFLOP/s")
        print(f"{row} cuBLAS: {work / cublas:.0f} TFLOP/s")
        print(f"{row} times cuBLAS: {cublas / ours:.2f}")
    taken = seconds(lambda: linear_backward(dy, x, w, False, False, True))
    print(f"{tokens}x{out} db: {dy.nbytes / taken / 1e9:.0f} GB/s")


for shape in SHAPES:
    compare(*shape)
