# needs: torch
"""What autograd checks of the tensor that backward returns, and what it lets pass."""

# %% setup
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"


class TimesTwo(torch.autograd.Function):
    """y = 2x, with a backward that returns whatever `wrong` makes of the right dx."""

    @staticmethod
    def forward(ctx, x, wrong):
        ctx.wrong = wrong
        return 2 * x

    @staticmethod
    def backward(ctx, dy):
        return ctx.wrong(2 * dy), None


def gradient(wrong):
    x = torch.ones(3, device=device, requires_grad=True)
    TimesTwo.apply(x, wrong).sum().backward()
    return x.grad


# %% shape
try:
    gradient(lambda dx: dx[:2])
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("a gradient of the wrong shape was taken")

# %% dtype
print("x.grad:", gradient(lambda dx: dx.double()).dtype)

# %% none
print("x.grad:", gradient(lambda dx: None))
