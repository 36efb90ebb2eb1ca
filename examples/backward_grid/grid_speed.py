# needs: gpu
"""The whole scaled-SiLU backward (dx and dw) with each grid for dw, beside a perfect map."""

# %% kernels
import torch
import triton
import triton.language as tl
from triton.testing import do_bench

from gradkernels.scaled_silu import scaled_silu

torch.manual_seed(0)


@triton.jit
def backward_block(dy_ptr, x_ptr, w, dx_ptr, n, block, BLOCK: tl.constexpr):
    offsets = block * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    s = tl.sigmoid(x)
    tl.store(dx_ptr + offsets, dy * w * (s + x * s * (1 - s)), mask=mask)
    return dy * x * s


@triton.jit
def atomic_kernel(dy_ptr, x_ptr, w_ptr, dx_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    w = tl.load(w_ptr).to(tl.float32)
    products = backward_block(dy_ptr, x_ptr, w, dx_ptr, n, tl.program_id(0), BLOCK)
    tl.atomic_add(dw_ptr, tl.sum(products, axis=0))


@triton.jit
def partials_kernel(dy_ptr, x_ptr, w_ptr, dx_ptr, partials_ptr, n, BLOCK: tl.constexpr):
    w = tl.load(w_ptr).to(tl.float32)
    products = backward_block(dy_ptr, x_ptr, w, dx_ptr, n, tl.program_id(0), BLOCK)
    tl.store(partials_ptr + tl.program_id(0), tl.sum(products, axis=0))


@triton.jit
def persistent_kernel(dy_ptr, x_ptr, w_ptr, dx_ptr, partials_ptr, n, BLOCK: tl.constexpr):
    w = tl.load(w_ptr).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for block in tl.range(tl.program_id(0), tl.cdiv(n, BLOCK), tl.num_programs(0), num_stages=3):
        total += backward_block(dy_ptr, x_ptr, w, dx_ptr, n, block, BLOCK)
    tl.store(partials_ptr + tl.program_id(0), tl.sum(total, axis=0))


# %% launchers
def one_atomic_cell(dy, x, w, block=4096):
    dx, dw = torch.empty_like(x), torch.zeros((), device=x.device)
    blocks = triton.cdiv(x.numel(), block)
    atomic_kernel[(blocks,)](dy, x, w, dx, dw, x.numel(), BLOCK=block, num_warps=block // 512)
    return dx, dw


def a_partial_per_block(dy, x, w, block=4096):
    blocks = triton.cdiv(x.numel(), block)
    dx, partials = torch.empty_like(x), torch.empty(blocks, device=x.device)
    partials_kernel[(blocks,)](
        dy, x, w, dx, partials, x.numel(), BLOCK=block, num_warps=block // 512
    )
    return dx, partials.sum()


def a_partial_per_program(dy, x, w, block=4096):
    programs = 4 * torch.cuda.get_device_properties(x.device).multi_processor_count
    dx, partials = torch.empty_like(x), torch.empty(programs, device=x.device)
    persistent_kernel[(programs,)](
        dy, x, w, dx, partials, x.numel(), BLOCK=block, num_warps=block // 512
    )
    return dx, partials.sum()


GRIDS = (one_atomic_cell, a_partial_per_block, a_partial_per_program)

# %% agree
x = torch.randn(2**20 + 3, device="cuda", dtype=torch.bfloat16)
dy = torch.randn_like(x)
w = torch.tensor(1.5, device="cuda")
x64 = x.double().requires_grad_()
w64 = w.double().requires_grad_()
(w64 * torch.nn.functional.silu(x64)).backward(dy.double())
for grid in GRIDS:
    dx, dw = grid(dy, x, w)
    dx_right = torch.allclose(dx.double(), x64.grad, rtol=2**-7, atol=1e-6)
    dw_right = torch.allclose(dw.double(), w64.grad, rtol=1e-3, atol=0.1)
    print(f"{grid.__name__}: dx right: {dx_right}, dw right: {dw_right}")

# %% speed tags=["measured"]
x = torch.randn(2**27, device="cuda", dtype=torch.bfloat16)
dy = torch.randn_like(x)
dx = torch.empty_like(x)
least_bytes = 3 * x.numel() * x.element_size()


def gbps(call):
    return least_bytes / do_bench(call, warmup=10, rep=100, return_mode="median") / 1e6


print(f"add: {gbps(lambda: torch.add(x, dy, out=dx)):.0f} GB/s")
for grid in GRIDS:
    print(f"{grid.__name__}: {gbps(lambda grid=grid: grid(dy, x, w)):.0f} GB/s")

# %% smaller-blocks tags=["measured"]
for grid in GRIDS:
    print(f"{grid.__name__}: {gbps(lambda grid=grid: grid(dy, x, w, block=1024)):.0f} GB/s")

# %% library tags=["measured"]
x.requires_grad_()
w.requires_grad_()
for how in ("partials", "atomic"):
    y = scaled_silu(x, w, dw=how)
    speed = gbps(lambda y=y: torch.autograd.grad(y, (x, w), dy, retain_graph=True))
    print(f"gradkernels {how}: {speed:.0f} GB/s")
