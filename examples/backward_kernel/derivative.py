"""GELU and its derivative, both computed by the kernels."""

# %% setup
import math

import matplotlib.pyplot as plt
import torch

from gradkernels.gelu import gelu_backward, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"

# %% values
x = torch.tensor([-10.0, -math.sqrt(2), 0.0, math.sqrt(2), 10.0], device=device)
slopes = gelu_backward(torch.ones_like(x), x)
for point, slope in zip(x.tolist(), slopes.tolist(), strict=True):
    print(f"x {point:8.4f}   slope {slope:7.4f}")

# %% plot
x = torch.linspace(-4, 4, 201, device=device)
figure, axes = plt.subplots(figsize=(4.5, 3.2), layout="constrained")
axes.plot(x.cpu(), gelu_forward(x).cpu(), label="y = x Φ(x)")
axes.plot(x.cpu(), gelu_backward(torch.ones_like(x), x).cpu(), "--", label="slope Φ(x) + x φ(x)")
axes.axhline(0, color="grey", linewidth=0.5)
axes.set_xlabel("x")
axes.legend()
