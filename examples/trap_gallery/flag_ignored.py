"""The forward masks the future and the backward forgets to."""
# time limit: 300 s

# %% broken
import torch
import torch.nn.functional as F

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


def probabilities(q, k, causal):
    scores = q.float() @ k.float().mT / max(q.shape[-1], 1) ** 0.5
    if causal:
        future = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -torch.inf)
    return torch.softmax(scores, -1)


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, causal):
        ctx.save_for_backward(q, k, v)
        ctx.causal = causal
        return (probabilities(q, k, causal) @ v.float()).to(q.dtype)

    @staticmethod
    def backward(ctx, dy, causal=False):
        if torch.is_grad_enabled():
            raise RuntimeError("first derivatives only")
        q, k, v = ctx.saved_tensors
        p, dy = probabilities(q, k, causal), dy.float()
        dp = dy @ v.float().mT
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) / max(q.shape[-1], 1) ** 0.5
        dq, dk, dv = ds @ k.float(), ds.mT @ q.float(), p.mT @ dy
        return dq.to(q.dtype), dk.to(k.dtype), dv.to(v.dtype), None


def reference(q, k, v, causal):
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


# %% wrong
torch.manual_seed(0)
q, k, v = torch.randn(3, 2, 5, 4, device=device).unbind()
for causal in (False, True):
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    got = torch.autograd.grad(Broken.apply(*leaves, causal).square().sum(), leaves)
    expected = torch.autograd.grad(reference(*leaves, causal).square().sum(), leaves)
    right = [torch.allclose(a, b, atol=1e-5) for a, b in zip(got, expected, strict=True)]
    print(f"causal={causal}: dq, dk, dv right: {right}")

# %% proof
report = prove(Broken.apply, (q, k, v, True), reference=reference)
print(report)


# %% mended
class Mended(Broken):
    @staticmethod
    def backward(ctx, dy):
        return Broken.backward(ctx, dy, ctx.causal)


mended = prove(Mended.apply, (q, k, v, True), reference=reference)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (q, k, v, True))}")
print(f"opcheck: {opcheck(Broken.apply, (q, k, v, True))}")
