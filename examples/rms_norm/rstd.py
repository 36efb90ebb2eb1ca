"""Why every library saves rstd: what it holds, what it spares, and how precise it must be."""

# %% bytes
import torch

from gradkernels.rms_norm import rms_norm

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
rows, d = 64, 4096
x = torch.randn(rows, d, device=device, dtype=torch.bfloat16, requires_grad=True)
w = torch.randn(d, device=device, dtype=torch.bfloat16, requires_grad=True)


def composed(x, w, eps):
    return x * torch.rsqrt(x.square().mean(dim=1, keepdim=True) + eps) * w


def saved_tensors(forward):
    saved = {}
    with torch.autograd.graph.saved_tensors_hooks(
        lambda t: saved.setdefault(t.untyped_storage().data_ptr(), t), lambda t: t
    ):
        forward(x, w, 1e-6)
    return saved.values()


for forward in (composed, rms_norm):
    sizes = [t.numel() for t in saved_tensors(forward)]
    print(f"{forward.__name__}: as large as x: {sizes.count(x.numel())}", end=", ")
    print(f"one number a row: {sizes.count(rows)}")

# %% precision
x64, w64 = x.detach().double().requires_grad_(), w.detach().double()
dy = torch.randn(rows, d, device=device).double()
torch.nn.functional.rms_norm(x64, (d,), w64, 1e-6).backward(dy)


def dx_with(rstd):
    x_hat = x64.detach() * rstd
    return rstd * (w64 * dy - x_hat * (w64 * dy * x_hat).mean(dim=1, keepdim=True))


(kept,) = (t.view(rows, 1) for t in saved_tensors(rms_norm) if t.numel() == rows)
for dtype in (torch.float32, torch.bfloat16):
    error = (dx_with(kept.to(dtype).double()) - x64.grad).norm() / x64.grad.norm()
    print(f"rstd kept in {dtype}: relative error of dx above 1e-4: {error.item() > 1e-4}")

# %% column-grid
BLOCK = 128
with_rstd = 2 * rows * d * x.element_size() + (d // BLOCK) * rows * 4
without = (d // BLOCK) * rows * d * x.element_size() + rows * d * x.element_size()
print(f"dw by {d // BLOCK} programs that own {BLOCK} columns each")
print(f"bytes read with a saved rstd: {with_rstd}")
print(f"bytes read if each program makes rstd again: {without}")
print(f"times as many: {without / with_rstd:.1f}")
