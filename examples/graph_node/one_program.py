"""One program for the whole tensor: the shortest GELU launch, and four inputs that break it."""

# %% kernel
import torch
import triton
import triton.language as tl

from gradkernels.gelu import gelu

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def one_program_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    cdf = 0.5 * (1 + tl.erf(x * 0.7071067811865476))
    tl.store(y_ptr + offsets, x * cdf, mask=mask)


def one_program_gelu(x):
    y = torch.empty_like(x)
    n = x.numel()
    one_program_kernel[(1,)](x, y, n, BLOCK=triton.next_power_of_2(n))
    return y


def refused(x):
    try:
        one_program_gelu(x)
    except Exception as error:
        print(f"{type(error).__name__}: {str(error).splitlines()[-1]}")
    else:
        raise AssertionError("the launch went through")


# %% small
x = torch.tensor([-1.0, 0.5, 2.0], device=device)
print("right:", torch.allclose(one_program_gelu(x), torch.nn.functional.gelu(x), atol=1e-6))

# %% empty
refused(torch.empty(0, device=device))

# %% large
refused(torch.zeros(2**20 + 1, device=device))

# %% half
refused(torch.ones(4, device=device, dtype=torch.float16))

# %% strided
x = torch.tensor([[-1.0, 7.0], [0.5, 7.0], [2.0, 7.0]], device=device)[:, ::2]
print("torch:", torch.nn.functional.gelu(x).flatten().cpu())
print("one program:", one_program_gelu(x).flatten().cpu())

# %% mended
inputs = {
    "empty": torch.empty(0, device=device),
    "large": torch.ones(2**20 + 1, device=device),
    "half": torch.ones(4, device=device, dtype=torch.float16),
    "strided": x,
}
for name, x in inputs.items():
    print(f"{name}:", torch.allclose(gelu(x), torch.nn.functional.gelu(x), atol=1e-6))
