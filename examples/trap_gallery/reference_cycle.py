"""The output kept on ctx holds its own node: only the garbage collector frees either."""

# %% broken
import gc
import weakref

import torch

from gradproof.peers import gradcheck, opcheck
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"


class Broken(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.y = torch.exp(x)
        return ctx.y

    @staticmethod
    def backward(ctx, dy):
        return dy * ctx.y


# %% wrong
x = torch.linspace(-2, 2, 12, device=device).requires_grad_()
gc.disable()
y = Broken.apply(x)
node = weakref.ref(y.grad_fn)
del y
print(f"after del y the node is alive: {node() is not None}")
gc.enable()
gc.collect()
print(f"after a collection: {node() is not None}")

# %% proof
report = prove(Broken.apply, (x,), reference=torch.exp)
print(report)


# %% mended
class Mended(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = torch.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, dy):
        (y,) = ctx.saved_tensors
        return dy * y


mended = prove(Mended.apply, (x,), reference=torch.exp)
print(mended.summary)

# %% peers
print(f"probes: {', '.join(report.seen_by) or 'none'}")
print(f"gradcheck: {gradcheck(Broken.apply, (x,))}")
print(f"opcheck: {opcheck(Broken.apply, (x,))}")
