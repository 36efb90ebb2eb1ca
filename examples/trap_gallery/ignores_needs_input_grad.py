"""Where x needs no gradient there is nothing to do, it seems; but the weight needs one."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x * weight

    @staticmethod
    def backward(ctx, dy):
        if not ctx.needs_input_grad[0]:
            return None, None
        x, weight = ctx.saved_tensors
        return dy * weight, (dy * x).sum(0)


# %% wrong
torch.manual_seed(0)
data = torch.randn(6, 8, device=device)
weight = torch.randn(8, device=device, requires_grad=True)

for name, x in (("data", data), ("activations", data.clone().requires_grad_())):
    (dw,) = torch.autograd.grad(Broken.apply(x, weight).sum(), weight, allow_unused=True)
    print(f"x is {name}, and the weight's gradient is None: {dw is None}")

# %% proof
report = prove(Broken.apply, (data, weight.detach()), reference=torch.mul)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dx = dy * weight if ctx.needs_input_grad[0] else None
        dw = (dy * x).sum(0) if ctx.needs_input_grad[1] else None
        return dx, dw


mended = prove(Mended.apply, (data, weight.detach()), reference=torch.mul)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (data, weight))}")
print(f"opcheck: {opcheck(Broken.apply, (data, weight))}")
