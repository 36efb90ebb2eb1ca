"""The interpreter runs a kernel with NumPy on any CPU. Three places where it is not the GPU."""

# %% setup
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% rounding
@triton.jit
def to_bf16_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets).to(tl.bfloat16))


x = torch.tensor([1.0, 1.00390625 + 0.0001, 1.0078125, 3.999], device=device)
y = torch.empty(4, dtype=torch.bfloat16, device=device)
to_bf16_kernel[(1,)](x, y, BLOCK=4)
print(f"kernel: {y.tolist()}")
print(f"torch:  {x.bfloat16().tolist()}")


# %% sum-bf16
@triton.jit
def sum_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, IN_FP32: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    if IN_FP32:
        x = x.to(tl.float32)
    tl.store(out_ptr, tl.sum(x, axis=0))


ones = torch.ones(4, dtype=torch.bfloat16, device=device)
total = torch.empty(1, device=device)
sum_kernel[(1,)](ones, total, BLOCK=4, IN_FP32=False)
print(f"four ones, summed as bf16: {total.item()}")
sum_kernel[(1,)](ones, total, BLOCK=4, IN_FP32=True)
print(f"four ones, summed as fp32: {total.item()}")


# %% product
@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, BLOCK: tl.constexpr):
    row = tl.arange(0, BLOCK)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    a = tl.load(a_ptr + row * BLOCK + column)
    b = tl.load(b_ptr + row * BLOCK + column)
    tl.store(c_ptr + row * BLOCK + column, tl.dot(a, b))


torch.manual_seed(0)
a = torch.randn(32, 32, device=device)
b = torch.randn(32, 32, device=device)
c = torch.empty(32, 32, device=device)
product_kernel[(1,)](a, b, c, BLOCK=32)
exact = a.double() @ b.double()
error = (c - exact).abs().max().item()
print(f"fp32 tl.dot within 1e-5 of the exact product: {error < 1e-5}")
