# needs: gpu 80GB
# time limit: 300 s
"""Cross-entropy of a large vocabulary, forward and backward, with the logits left as they are."""

# %% setup
from importlib.util import find_spec

import torch
import torch.nn.functional as F
from triton.testing import do_bench

from gradkernels.cross_entropy import cross_entropy

torch.manual_seed(0)
ROWS, CLASSES = 8192, 128256
logits = torch.randn(ROWS, CLASSES, device="cuda", dtype=torch.bfloat16, requires_grad=True)
target = torch.randint(CLASSES, (ROWS,), device="cuda")


def seconds(loss):
    return do_bench(lambda: torch.autograd.grad(loss(), logits), return_mode="median") / 1e3


# %% table tags=["measured"]
ours = seconds(lambda: cross_entropy(logits, target))
eager = seconds(lambda: F.cross_entropy(logits, target))
compiled = torch.compile(F.cross_entropy)
compile_ = seconds(lambda: compiled(logits, target))
out = torch.empty_like(logits)
copy = do_bench(lambda: out.copy_(logits.detach()), return_mode="median") / 1e3
# Two reads and one write are the least: the gradient needs the sum over the whole row first.
rate, copy_rate = 3 * logits.nbytes / ours / 1e9, 2 * logits.nbytes / copy / 1e9
print(f"ours: {1e3 * ours:.2f} ms, {rate:.0f} GB/s")
print(f"copy: {copy_rate:.0f} GB/s")
print(f"share of copy: {rate / copy_rate:.2f}")
print(f"times eager: {eager / ours:.2f}")
print(f"times compile: {compile_ / ours:.2f}")

# %% untouched
before = logits.detach().clone()
torch.autograd.grad(cross_entropy(logits, target), logits)
print(f"logits as they were: {torch.equal(before, logits.detach())}")

# %% liger tags=["measured"]
if find_spec("liger_kernel"):
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction

    # It writes the gradient over the logits, so every run after the first is on other numbers.
    liger = seconds(lambda: LigerCrossEntropyFunction.apply(logits, target, None, -100)[0])
    print(f"times liger, which overwrites the logits: {liger / ours:.2f}")
