"""What the gradient of a sum and that of a mean look like when they arrive."""
# needs: torch

# %% strides
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.ones(3, 4, device=device, requires_grad=True)
for loss in (torch.Tensor.sum, torch.Tensor.mean):
    y = x.sin()
    y.register_hook(
        lambda dy, name=loss.__name__: print(
            f"{name}: strides {dy.stride()}, elements in memory "
            f"{dy.untyped_storage().nbytes() // dy.element_size()}"
        )
    )
    loss(y).backward()
