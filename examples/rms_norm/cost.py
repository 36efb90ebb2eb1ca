# needs: gpu
"""The whole RMSNorm backward by either grid, over rows and width, beside a perfect map."""

# %% kernels
from functools import partial

import matplotlib.pyplot as plt
import torch
import triton
import triton.language as tl
from triton.testing import do_bench

from gradkernels.rms_norm import rms_norm

torch.manual_seed(0)


@triton.jit
def backward_row(dy_ptr, x_ptr, w, rstd_ptr, dx_ptr, row, d, BLOCK: tl.constexpr):
    """Write dx of one row; return what the row contributes to dw."""
    columns = tl.arange(0, BLOCK)
    mask = columns < d
    dy = tl.load(dy_ptr + row * d + columns, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + row * d + columns, mask=mask, other=0.0).to(tl.float32)
    rstd = tl.load(rstd_ptr + row)
    x_hat = x * rstd
    dx = rstd * (w * dy - x_hat * tl.sum(w * dy * x_hat, axis=0) / d)
    tl.store(dx_ptr + row * d + columns, dx, mask=mask)
    return dy * x_hat


@triton.jit
def atomic_kernel(dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, dw_ptr, d, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + columns, mask=columns < d, other=0.0).to(tl.float32)
    product = backward_row(dy_ptr, x_ptr, w, rstd_ptr, dx_ptr, tl.program_id(0), d, BLOCK)
    tl.atomic_add(dw_ptr + columns, product, mask=columns < d)


@triton.jit
def partials_kernel(
    dy_ptr, x_ptr, w_ptr, rstd_ptr, dx_ptr, partials_ptr, rows, d, BLOCK: tl.constexpr
):
    columns = tl.arange(0, BLOCK)
    w = tl.load(w_ptr + columns, mask=columns < d, other=0.0).to(tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for row in range(tl.program_id(0), rows, tl.num_programs(0)):
        total += backward_row(dy_ptr, x_ptr, w, rstd_ptr, dx_ptr, row, d, BLOCK)
    tl.store(partials_ptr + tl.program_id(0) * d + columns, total, mask=columns < d)


# %% launchers
def shape_options(d):
    block = triton.next_power_of_2(d)
    return {"BLOCK": block, "num_warps": min(16, max(4, block // 512))}


def atomic(dy, x, w, rstd):
    dx, dw = torch.empty_like(x), torch.zeros(x.shape[1], device=x.device)
    atomic_kernel[(x.shape[0],)](dy, x, w, rstd, dx, dw, x.shape[1], **shape_options(x.shape[1]))
    return dx, dw


def partials(dy, x, w, rstd):
    rows, d = x.shape
    programs = min(rows, 2 * torch.cuda.get_device_properties(x.device).multi_processor_count)
    dx, sums = torch.empty_like(x), torch.empty(programs, d, device=x.device)
    partials_kernel[(programs,)](dy, x, w, rstd, dx, sums, rows, d, **shape_options(d))
    return dx, sums.sum(dim=0)


def inputs(rows, d):
    x, dy = (torch.randn(rows, d, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    w = torch.randn(d, device="cuda", dtype=torch.bfloat16)
    return dy, x, w, torch.rsqrt(x.float().square().mean(dim=1) + 1e-6)


# %% agree
dy, x, w, rstd = inputs(300, 1000)
x64, w64 = x.double().requires_grad_(), w.double().requires_grad_()
torch.nn.functional.rms_norm(x64, (1000,), w64, 1e-6).backward(dy.double())
for grid in (atomic, partials):
    dx, dw = grid(dy, x, w, rstd)
    dx_right = torch.allclose(dx.double(), x64.grad, rtol=2**-6, atol=1e-3)
    dw_right = torch.allclose(dw.double(), w64.grad, rtol=1e-4, atol=1e-3)
    print(f"{grid.__name__}: dx right: {dx_right}, dw right: {dw_right}")

# %% sweep tags=["measured"]
ROWS, WIDTHS = (1024, 4096, 16384, 32768), (1024, 4096, 16384)


def gbps(call, x):
    milliseconds = do_bench(call, warmup=5, rep=40, return_mode="median")
    return 3 * x.numel() * x.element_size() / milliseconds / 1e6


speed = {}
print("GB/s by least bytes: read dy and x, write dx")
print(f"{'rows':>6}{'d':>7}{'atomic':>8}{'partials':>10}{'library':>9}{'add':>6}")
for d in WIDTHS:
    for rows in ROWS:
        dy, x, w, rstd = inputs(rows, d)
        x.requires_grad_(), w.requires_grad_()
        y, out = rms_norm(x, w, 1e-6), torch.empty_like(x)
        calls = (
            partial(atomic, dy, x, w, rstd),
            partial(partials, dy, x, w, rstd),
            partial(torch.autograd.grad, y, (x, w), dy, retain_graph=True),
            partial(torch.add, x.detach(), dy, out=out),
        )
        speed[d, rows] = row = [gbps(call, x) for call in calls]
        print(f"{rows:>6}{d:>7}{row[0]:>8.0f}{row[1]:>10.0f}{row[2]:>9.0f}{row[3]:>6.0f}")

# %% plot tags=["measured"]
figure, plots = plt.subplots(
    len(WIDTHS), figsize=(4.5, 7), sharex=True, sharey=True, layout="constrained"
)
for axes, d in zip(plots, WIDTHS, strict=True):
    for index, (name, style) in enumerate(
        (("atomic", "o--"), ("partials", "s-"), ("library", "^-"), ("add", "k:"))
    ):
        axes.semilogx(ROWS, [speed[d, rows][index] for rows in ROWS], style, base=2, label=name)
    axes.set_title(f"d = {d}")
    axes.set_ylabel("GB/s")
plots[0].legend()
plots[-1].set_xlabel("rows")
