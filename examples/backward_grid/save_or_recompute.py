# needs: torch
"""Count the bytes that autograd keeps alive between forward and backward."""

# %% counter
import torch
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"


def saved_tensors(forward, *inputs):
    """Every tensor that the forward saves, each allocation once."""
    saved = {}

    def keep(tensor):
        saved[tensor.untyped_storage().data_ptr()] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        forward(*inputs)
    return list(saved.values())


# %% recompute
class RecomputesSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        s = torch.sigmoid(x)
        return dy * w * (s + x * s * (1 - s)), (dy * x * s).sum()


class SavesSigmoid(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        s = torch.sigmoid(x)
        ctx.save_for_backward(x, w, s)
        return w * x * s

    @staticmethod
    def backward(ctx, dy):
        x, w, s = ctx.saved_tensors
        return dy * w * (s + x * s * (1 - s)), (dy * x * s).sum()


def eager(x, w):
    return w * (x * torch.sigmoid(x))


x = torch.randn(1024, 1024, device=device, dtype=torch.bfloat16, requires_grad=True)
w = torch.tensor(1.5, device=device, dtype=torch.bfloat16, requires_grad=True)
for name, forward in {
    "eager": eager,
    "saves sigmoid": SavesSigmoid.apply,
    "recomputes sigmoid": RecomputesSigmoid.apply,
}.items():
    kept = sum(t.nbytes for t in saved_tensors(forward, x, w) if t.numel() > 1)
    print(f"{name}: {kept / x.numel():.0f} bytes per element")

# %% one-number-a-row
rows, d = 1024, 4096
x = torch.randn(rows, d, device=device, dtype=torch.bfloat16, requires_grad=True)
weight = torch.ones(d, device=device, dtype=torch.bfloat16, requires_grad=True)
bias = torch.zeros(d, device=device, dtype=torch.bfloat16, requires_grad=True)
saved = saved_tensors(lambda x, w, b: F.layer_norm(x, (d,), w, b), x, weight, bias)
print(f"layer_norm saves tensors of one number a row: {sum(t.numel() == rows for t in saved)}")
print(f"layer_norm saves tensors as large as x: {sum(t.numel() == x.numel() for t in saved)}")

q, k, v = (
    torch.randn(1, 4, 256, 64, device=device, dtype=torch.bfloat16, requires_grad=True)
    for _ in range(3)
)
saved = saved_tensors(F.scaled_dot_product_attention, q, k, v)
print(f"attention saves tensors of one number a row: {sum(t.numel() == 4 * 256 for t in saved)}")
print(f"attention saves an S × S matrix a head: {any(t.numel() >= 4 * 256**2 for t in saved)}")

# %% inputs
weight = torch.randn(512, d, device=device, dtype=torch.bfloat16, requires_grad=True)
saved = saved_tensors(F.linear, x, weight)
print(f"linear saves: {sorted(tuple(t.shape) for t in saved)}")
