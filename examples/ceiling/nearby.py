# needs: gpu 80GB
# time limit: 300 s
"""Random shapes near the ones of the table: nothing in a launcher knows a shape."""

# %% setup
import random

import torch

from _timing import seconds
from gradkernels.layer_norm import layer_norm_backward, layer_norm_forward
from gradkernels.rms_norm import rms_norm_backward, rms_norm_forward
from gradkernels.softmax import softmax_backward, softmax_forward

random.seed(0)
torch.manual_seed(0)
SHAPES = [(32768, 1024), (32768, 4096), (16384, 8192), (4096, 16384)]


def near(size, unit):
    return unit * round(random.uniform(0.75, 1.25) * size / unit)


def shares(rows, n):
    """Each backward's rate as a share of that of `torch.add` over as many elements."""
    x, dy, out = torch.randn(3, rows, n, device="cuda", dtype=torch.bfloat16)
    w, b = torch.randn(2, n, device="cuda", dtype=torch.bfloat16)
    y = softmax_forward(x)
    _, rms = rms_norm_forward(x, w, 1e-6)
    _, mean, rstd = layer_norm_forward(x, w, b, 1e-5)
    add = seconds(lambda: torch.add(x, dy, out=out))
    return {
        "rms_norm": add / seconds(lambda: rms_norm_backward(dy, x, w, rms, "partials")),
        "layer_norm": add / seconds(lambda: layer_norm_backward(dy, x, w, mean, rstd)),
        "softmax": add / seconds(lambda: softmax_backward(dy, y)),
    }


# %% shares tags=["measured"]
for rows, n in SHAPES:
    for label, unit in (("near", 16), ("near too", 16), ("any width", 1)):
        shape = near(rows, 16), near(n, unit)
        print(f"{rows}x{n} {label}: {shape[0]}x{shape[1]}")
        for name, share in shares(*shape).items():
            print(f"{rows}x{n} {label}, {name}: {share:.2f}")
