# needs: gpu
# time limit: 300 s
"""Kernels of a library that is well tested, asked two questions."""

# %% setup
from importlib.util import find_spec

import torch
import torch.nn.functional as F

from gradproof.prove import prove

torch.manual_seed(0)
x, y = torch.randn(2, 6, 40, device="cuda")
weight = torch.rand(40, device="cuda") + 0.5
target = torch.randint(40, (6,), device="cuda")

# %% reports tags=["measured"]
if find_spec("liger_kernel"):
    from liger_kernel.ops.cross_entropy import LigerCrossEntropyFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.softmax import LigerSoftmaxFunction
    from liger_kernel.ops.swiglu import LigerSiLUMulFunction

    def cross_entropy(logits, target):
        return LigerCrossEntropyFunction.apply(logits, target, None, -100)[0]

    def rms_norm(x, weight):
        return F.rms_norm(x, x.shape[-1:], weight, 1e-6)

    ops = {
        "cross_entropy": (cross_entropy, (x, target), F.cross_entropy),
        "rms_norm": (lambda *a: LigerRMSNormFunction.apply(*a, 1e-6), (x, weight), rms_norm),
        "silu_mul": (LigerSiLUMulFunction.apply, (x, y), lambda x, y: F.silu(x) * y),
        "softmax": (LigerSoftmaxFunction.apply, (x,), lambda x: F.softmax(x, -1)),
    }
    reports = {name: prove(*op, probes=["graph", "writes"]) for name, op in ops.items()}
    for name, report in reports.items():
        print(f"{name}: {', '.join(report.traps)}")

# %% evidence tags=["measured"]
if find_spec("liger_kernel"):
    for name in ("cross_entropy", "rms_norm"):
        print(reports[name].findings[0], end="\n\n")
