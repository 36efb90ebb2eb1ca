"""The wrapper: an ordinary Python function that allocates the output and launches the kernel."""

# %% kernel
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def scale_kernel(x_ptr, y_ptr, factor, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(y_ptr + offsets, factor * x, mask=mask)


# %% wrapper
def scale(x: torch.Tensor, factor: float) -> torch.Tensor:
    y = torch.empty_like(x)
    n = x.numel()

    def grid(meta):
        return (triton.cdiv(n, meta["BLOCK"]),)

    scale_kernel[grid](x, y, factor, n, BLOCK=1024)
    return y


x = torch.arange(5.0, device=device)
print(f"scale(x, 10): {scale(x, 10.0).tolist()}")

# %% blind-to-strides
every_second = torch.arange(6.0, device=device)[::2]
print(f"x: {every_second.tolist()}")
print(f"stride: {every_second.stride()}")
print(f"scale(x, 10): {scale(every_second, 10.0).tolist()}")


# %% contiguous
def scale_any(x: torch.Tensor, factor: float) -> torch.Tensor:
    return scale(x.contiguous(), factor)


print(f"scale_any(x, 10): {scale_any(every_second, 10.0).tolist()}")

# %% empty
print(f"shape: {tuple(scale(torch.empty(0, device=device), 10.0).shape)}")
