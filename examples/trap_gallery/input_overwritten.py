"""The backward of cross-entropy is written over the logits to save their memory."""
# time limit: 300 s

# %% broken
import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def cross_entropy_kernel(x_ptr, target_ptr, losses_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf")).to(tl.float32)
    target = tl.load(target_ptr + row)
    top = tl.max(x)
    lse = top + tl.log(tl.sum(tl.exp(x - top)))
    counted = target >= 0
    loss = lse - tl.sum(tl.where(columns == target, x, 0.0))
    tl.store(losses_ptr + row, tl.where(counted, loss, 0.0))
    dx = tl.exp(x - lse) - tl.where(columns == target, 1.0, 0.0)
    tl.store(dx_ptr + row * n + columns, tl.where(counted, dx, 0.0), mask=columns < n)


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits, target):
        logits = logits.contiguous()
        losses, dx = torch.empty(len(target), device=logits.device), logits
        n = logits.shape[-1]
        if n:
            grid, block = (len(target),), triton.next_power_of_2(n)
            cross_entropy_kernel[grid](logits, target, losses, dx, n, BLOCK=block)
        ctx.save_for_backward(dx)
        return losses.to(logits.dtype)

    @staticmethod
    def backward(ctx, dy):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        (dx,) = ctx.saved_tensors
        return (dx * dy[:, None]).to(dx.dtype), None


def reference(logits, target):
    return F.cross_entropy(logits, target, reduction="none")


# %% wrong
torch.manual_seed(0)
logits = torch.randn(6, 10, device=device).requires_grad_()
target = torch.tensor([3, 1, 9, 0, 5, 7], device=device)

before = logits.detach().clone()
loss = Broken.apply(logits, target).sum()
print(f"logits unchanged by the forward: {torch.equal(logits, before)}")
logits = before.requires_grad_()

# %% proof
report = prove(Broken.apply, (logits, target), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def forward(ctx, logits, target):
        return Broken.forward(ctx, logits.clone(memory_format=torch.contiguous_format), target)


mended = prove(Mended.apply, (logits, target), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (logits, target))}")
print(f"opcheck: {opcheck(Broken.apply, (logits, target))}")
