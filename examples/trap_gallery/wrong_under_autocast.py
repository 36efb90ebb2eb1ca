"""Under autocast the forward's products are bf16, and the backward meets fp32 weights."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.t()

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        x, weight = ctx.saved_tensors
        return dy @ weight, dy.t() @ x


# %% wrong
torch.manual_seed(0)
x = torch.randn(5, 8, device=device, requires_grad=True)
weight = torch.randn(3, 8, device=device, requires_grad=True)
with torch.autocast(device, torch.bfloat16):
    y = Broken.apply(x, weight)
print(f"the forward runs, in {y.dtype}")
try:
    y.sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {str(error).split(',')[0]}")
else:
    raise AssertionError("bf16 times fp32 went through")

# %% proof
report = prove(Broken.apply, (x, weight), reference=F.linear)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    @torch.amp.custom_fwd(device_type=device)
    def forward(ctx, x, weight):
        return Broken.forward(ctx, x, weight)

    @staticmethod
    @torch.amp.custom_bwd(device_type=device)
    def backward(ctx, dy):
        x, weight = ctx.saved_tensors
        dy = dy.to(x.dtype)
        return dy @ weight, dy.t() @ x


mended = prove(Mended.apply, (x, weight), reference=F.linear)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, weight))}")
print(f"opcheck: {opcheck(Broken.apply, (x, weight))}")
