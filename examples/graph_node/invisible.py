"""A kernel launch inside a plain Python function leaves no trace in autograd's graph."""

# %% setup
import torch

from gradkernels.gelu import gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.tensor([-1.0, 0.5, 2.0], device=device, requires_grad=True)

# %% launch
y = gelu_forward(x)
print("y:", y)
print("x.requires_grad:", x.requires_grad)
print("y.requires_grad:", y.requires_grad)
print("y.grad_fn:", y.grad_fn)

# %% backward
try:
    y.sum().backward()
except RuntimeError as error:
    print(f"RuntimeError: {error}")
else:
    raise AssertionError("a gradient came back through a launch that autograd did not see")
print("x.grad:", x.grad)

# %% built-in
reference = torch.nn.functional.gelu(x)
print("same values as y:", torch.allclose(y, reference, atol=1e-6))
print("grad_fn:", reference.grad_fn.name())
reference.sum().backward()
print("x.grad:", x.grad)

# %% arithmetic
scaled = 2 * x
written = torch.empty_like(x)
with torch.no_grad():
    written.copy_(2 * x)
print("same values:", torch.equal(scaled, written))
print("recorded:", scaled.requires_grad)
print("not recorded:", written.requires_grad)

# %% residual
y = x + gelu_forward(x)
(dx,) = torch.autograd.grad(y.sum(), x)
(right,) = torch.autograd.grad((x + torch.nn.functional.gelu(x)).sum(), x)
print("y.grad_fn:", y.grad_fn.name())
print("gradient:", dx.tolist())
print("torch's: ", [round(slope, 4) for slope in right.tolist()])
