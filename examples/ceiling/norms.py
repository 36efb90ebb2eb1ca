# needs: gpu 80GB
# time limit: 600 s
"""RMSNorm, LayerNorm and softmax beside their peers, and beside the least the memory can do."""

# %% setup
from importlib.util import find_spec

import torch
import torch.nn.functional as F

from _timing import leaf, rates, seconds
from gradkernels.layer_norm import layer_norm
from gradkernels.rms_norm import rms_norm
from gradkernels.softmax import softmax

torch.manual_seed(0)
SHAPES = [(32768, 1024), (32768, 4096), (16384, 8192), (4096, 16384)]


# %% peers
OURS = {
    "rms_norm": lambda x, w: rms_norm(x, w, 1e-6),
    "layer_norm": layer_norm,
    "softmax": softmax,
}
EAGER = {
    "rms_norm": lambda x, w: F.rms_norm(x, w.shape, w, 1e-6),
    "layer_norm": lambda x, w, b: F.layer_norm(x, w.shape, w, b),
    "softmax": lambda x: F.softmax(x, dim=-1),
}
PARAMETERS = {"rms_norm": 1, "layer_norm": 2, "softmax": 0}
LIGER = {}
if find_spec("liger_kernel"):
    from liger_kernel.ops.layer_norm import LigerLayerNormFunction
    from liger_kernel.ops.rms_norm import LigerRMSNormFunction
    from liger_kernel.ops.softmax import LigerSoftmaxFunction

    LIGER = {  # out of place: the last argument says that dy may not be overwritten
        "rms_norm": lambda x, w: LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False),
        "layer_norm": lambda x, w, b: LigerLayerNormFunction.apply(x, w, b, 1e-5),
        "softmax": LigerSoftmaxFunction.apply,
    }

# %% table tags=["measured"]
for name, op in OURS.items():
    for rows, n in SHAPES:
        torch.compiler.reset()
        peers = {"eager": EAGER[name], "compile": torch.compile(EAGER[name], dynamic=False)}
        if name in LIGER:
            peers["liger"] = LIGER[name]
        inputs = [leaf(rows, n), *(leaf(n) for _ in range(PARAMETERS[name]))]
        x, dy = inputs[0].detach(), torch.randn(rows, n, device="cuda", dtype=torch.bfloat16)
        out = torch.empty_like(x)
        add = 3 * x.nbytes / seconds(lambda x=x, dy=dy, out=out: torch.add(x, dy, out=out)) / 1e9
        forward, backward = rates(op, inputs, dy)
        theirs = {peer: rates(f, inputs, dy) for peer, f in peers.items()}
        best_forward, best_backward = (max(rate) for rate in zip(*theirs.values(), strict=True))
        row = f"{name} {rows}x{n}"
        print(f"{row} add: {add:.0f} GB/s")
        for peer, (f, b) in {"ours": (forward, backward), **theirs}.items():
            print(f"{row} {peer}, forward and backward: {f:.0f} and {b:.0f} GB/s")
        print(f"{row} share of add: {backward / add:.2f}")
        print(f"{row} backward, times the best peer: {backward / best_backward:.2f}")
        print(f"{row} forward, times the best peer: {forward / best_forward:.2f}")
