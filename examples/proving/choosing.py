"""Which probes there are, one of them alone, and what can be said without a reference."""

# %% probes
import torch
import torch.nn.functional as F

from gradkernels.gelu import gelu
from gradproof.probes import PROBES
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"

for probe in PROBES.values():
    print(f"{probe.name:<14}{probe.question}{' (on request)' * probe.on_request}")


# %% no-reference
def twice(x):
    return Twice.apply(x)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return F.silu(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        s = torch.sigmoid(x)
        return 2 * dy * s * (1 + x * (1 - s))


torch.manual_seed(0)
x = torch.randn(4, 6, device=device)
for op in (gelu, twice):
    print(prove(op, (x,), probes=["values"]), end="\n\n")


# %% no-double
def half_only(x):
    if x.dtype == torch.float64:
        raise TypeError("half_only takes no float64")
    return twice(x)


print(prove(half_only, (x.half(),), probes=["values"]))
