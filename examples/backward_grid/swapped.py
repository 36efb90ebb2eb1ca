# needs: torch
"""dx and dw swapped, where only w asks for a gradient: autograd finds nothing to object to."""

# %% swapped
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class Swapped(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        s = torch.sigmoid(x)
        dx, dw = dy * w * (s + x * s * (1 - s)), (dy * x * s).sum()
        return dw, dx


x = torch.linspace(-2, 2, 5, device=device)
w = torch.tensor(1.5, device=device, requires_grad=True)
Swapped.apply(x, w).sum().backward()
right = (x * torch.sigmoid(x)).sum()
print(f"w.grad: {w.grad.item():.4f}  (should be {right.item():.4f})")
