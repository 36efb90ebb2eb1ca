"""The library's rms_norm: which gradients repeat bit for bit, for either grid."""

# %% setup
import torch

from gradkernels.rms_norm import rms_norm

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
rows, d = (32768, 1024) if device == "cuda" else (64, 48)
x = torch.randn(rows, d, device=device, requires_grad=True)
w = torch.randn(d, device=device, requires_grad=True)
dy = torch.randn(rows, d, device=device)


def gradients(dw):
    return torch.autograd.grad(rms_norm(x, w, 1e-6, dw=dw), (x, w), dy)


# %% right
x64, w64 = x.detach().double().requires_grad_(), w.detach().double().requires_grad_()
y64 = torch.nn.functional.rms_norm(x64, (d,), w64, 1e-6)
dx64, dw64 = torch.autograd.grad(y64, (x64, w64), dy.double())
dx, dw = gradients("partials")
print(f"dx right: {torch.allclose(dx.double(), dx64, rtol=1e-4, atol=1e-5)}")
print(f"dw right: {torch.allclose(dw.double(), dw64, rtol=1e-4, atol=1e-2)}")

# %% repeat
for how in ("atomic", "partials"):
    runs = [gradients(how) for _ in range(20)]
    print(f"{how}: dx always the same: {all(torch.equal(run[0], runs[0][0]) for run in runs)}")
    print(f"{how}: dw always the same: {all(torch.equal(run[1], runs[0][1]) for run in runs)}")
