"""dw is allocated in bf16 for an fp32 parameter, and cast back as if nothing were lost."""

# %% broken
import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * x

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return w * dy, (x * dy).sum().to(torch.bfloat16)


def reference(x, w):
    return w * x


# %% wrong
torch.manual_seed(0)
x = torch.randn(100, device=device).requires_grad_()
w = torch.tensor(1.5, device=device, requires_grad=True)

Broken.apply(x, w).sum().backward()
print(f"w.grad has dtype {w.grad.dtype}")
print(f"and only 8 bits: {torch.equal(w.grad, w.grad.to(torch.bfloat16).float())}")

# %% proof
report = prove(Broken.apply, (x, w), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        return w * dy, (x * dy).sum()


mended = prove(Mended.apply, (x, w), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x, w))}")
print(f"opcheck: {opcheck(Broken.apply, (x, w))}")
