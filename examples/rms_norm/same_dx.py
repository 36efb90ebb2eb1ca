"""Whatever grid adds up dw, dx is the same to the last bit."""

# %% compare
import torch

from gradkernels.rms_norm import rms_norm

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
rows, d = (32768, 1024) if device == "cuda" else (64, 48)
x = torch.randn(rows, d, device=device, requires_grad=True)
w = torch.randn(d, device=device, requires_grad=True)
dy = torch.randn(rows, d, device=device)

dx = {}
for how in ("atomic", "partials"):
    dx[how], _ = torch.autograd.grad(rms_norm(x, w, 1e-6, dw=how), (x, w), dy)
x64 = x.detach().double().requires_grad_()
torch.nn.functional.rms_norm(x64, (d,), w.detach().double(), 1e-6).backward(dy.double())
print(f"dx right: {torch.allclose(dx['partials'].double(), x64.grad, rtol=1e-4, atol=1e-5)}")
print(f"dx, the same bits by either grid: {torch.equal(dx['atomic'], dx['partials'])}")
