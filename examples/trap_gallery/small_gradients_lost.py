"""p is rounded to bf16 before the 1 is taken off: where p is nearly 1 nothing is left."""

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        p = torch.softmax(logits.float(), -1)
        ctx.save_for_backward(p.to(logits.dtype), target)
        return F.cross_entropy(logits.float(), target, reduction="none").to(logits.dtype)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        p, target = ctx.saved_tensors
        rows = torch.arange(len(target), device=target.device)
        counted = target >= 0
        dx = p.clone()
        dx[rows[counted], target[counted]] -= 1
        return dx * (dy * counted)[:, None].to(p.dtype), None


def reference(logits, target):
    wide = torch.promote_types(logits.dtype, torch.float32)
    return F.nll_loss(F.log_softmax(logits, -1, dtype=wide), target, reduction="none")


# %% wrong
torch.manual_seed(0)
target = torch.tensor([3, 1, 7, 0, 5, 7], device=device)
logits = torch.randn(6, 8, device=device)
logits[torch.arange(6), target] += 3  # a model that is often right
logits = logits.to(torch.bfloat16).requires_grad_()
sure = (4 * logits).detach().requires_grad_()
(dx,) = torch.autograd.grad(Broken.apply(sure, target).sum(), sure)
zero = int((dx.gather(-1, target[:, None]) == 0).sum())
print(f"targets with no gradient left: {zero} of 6")

# %% proof
report = prove(Broken.apply, (logits, target), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def forward(ctx, logits, target):
        ctx.save_for_backward(torch.softmax(logits.float(), -1), target)
        ctx.dtype = logits.dtype
        return F.cross_entropy(logits.float(), target, reduction="none").to(logits.dtype)

    @staticmethod
    def backward(ctx, dy):
        dx, none = Broken.backward(ctx, dy)
        return dx.to(ctx.dtype), none


mended = prove(Mended.apply, (logits, target), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (logits, target))}")
print(f"opcheck: {opcheck(Broken.apply, (logits, target))}")
