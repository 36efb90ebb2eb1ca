"""The node inside an nn.Module, and training steps that learn w."""

# %% module
import torch

from gradkernels.scaled_silu import scaled_silu

device = "cuda" if torch.cuda.is_available() else "cpu"


class ScaledActivation(torch.nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.w = torch.nn.Parameter(torch.tensor(scale))

    def forward(self, x):
        return scaled_silu(x, self.w)


# %% one-step
torch.manual_seed(0)
x = torch.randn(256, 8).to(device)
target = 2.5 * torch.nn.functional.silu(x)

activation = ScaledActivation(scale=1.0).to(device)
optimizer = torch.optim.SGD(activation.parameters(), lr=0.5)
loss = torch.nn.functional.mse_loss(activation(x), target)
loss.backward()
optimizer.step()
print(f"w.grad is negative, so w must grow: {activation.w.grad.item() < 0}")
print(f"w after one step: {activation.w.item():.3f}")

# %% training
for _step in range(40):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(activation(x), target)
    loss.backward()
    optimizer.step()
print(f"w after 41 steps: {activation.w.item():.3f}  (the target was made with 2.5)")

# %% in-a-model
model = torch.nn.Sequential(torch.nn.Linear(8, 16), ScaledActivation(), torch.nn.Linear(16, 1)).to(
    device
)
model(x).square().mean().backward()
for name, parameter in model.named_parameters():
    print(f"{name}: has a gradient: {parameter.grad is not None and bool(parameter.grad.any())}")
