"""What a gradient is: how far the loss moves when one input moves a little."""

# %% setup
import torch

from gradkernels.gelu import gelu_backward, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.tensor([-1.0, 0.5, 2.0], device=device, dtype=torch.float64)
dy = torch.tensor([1.0, 10.0, 100.0], device=device, dtype=torch.float64)


# %% nudge
def loss(x):
    return (dy * gelu_forward(x)).sum()


for i in range(3):
    nudge = torch.zeros_like(x)
    nudge[i] = 1e-6
    slope = (loss(x + nudge) - loss(x - nudge)) / 2e-6
    print(f"moving x[{i}]: {slope.item():.4f}")

# %% kernel
print("dx:", [round(value, 4) for value in gelu_backward(dy, x).tolist()])
