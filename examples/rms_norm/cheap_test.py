"""A test that needs no reference: dx of a normalisation has no part along x."""

# %% test
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"
EPS = 1e-6


def cosine(dx, direction):
    """The largest |cosine| between a row of dx and the same row of `direction`."""
    dot = (dx * direction).sum(dim=1)
    return (dot / (dx.norm(dim=1) * direction.norm(dim=1))).abs().max().item()


def passes(dx, direction):
    return cosine(dx, direction) < 1e-4


# %% candidates
@triton.jit
def dx_kernel(
    dy_ptr, x_ptr, w_ptr, dx_ptr, d, divisor, eps, PROJECT: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < d
    dy = tl.load(dy_ptr + row * d + columns, mask=mask, other=0.0)
    x = tl.load(x_ptr + row * d + columns, mask=mask, other=0.0)
    w = tl.load(w_ptr + columns, mask=mask, other=0.0)
    rstd = tl.rsqrt(tl.sum(x * x, axis=0) / d + eps)
    x_hat = x * rstd
    dx = w * dy
    if PROJECT:
        dx -= x_hat * tl.sum(w * dy * x_hat, axis=0) / divisor
    tl.store(dx_ptr + row * d + columns, rstd * dx, mask=mask)


def dx_by(dy, x, w, project=True, pad_divisor=False):
    rows, d = x.shape
    dx = torch.empty_like(x)
    block = triton.next_power_of_2(d)
    divisor = block if pad_divisor else d
    dx_kernel[(rows,)](dy, x, w, dx, d, divisor, EPS, PROJECT=project, BLOCK=block)
    return dx


def inputs(d):
    torch.manual_seed(0)
    return [torch.randn(shape).to(device) for shape in ((6, d), (6, d), (d,))]


# %% projection
dy, x, w = inputs(50)
x64 = x.double().requires_grad_()
torch.nn.functional.rms_norm(x64, (50,), w.double(), EPS).backward(dy.double())
for name, project in (("dropped", False), ("there", True)):
    dx = dx_by(dy, x, w, project=project)
    off = (dx - x64.grad).norm() / x64.grad.norm()
    print(f"projection {name}: passes: {passes(dx, x)}, dx off by {off.item():.2f}")

# %% padded-width
for d in (64, 50):
    dx = dx_by(*inputs(d), pad_divisor=True)
    print(f"d = {d}, mean over the block: passes: {passes(dx, inputs(d)[1])}")

# %% layer-norm
dy, x, w = inputs(50)
x.requires_grad_()
y = torch.nn.functional.layer_norm(x, (50,), w)
(dx,) = torch.autograd.grad(y, x, dy)
centred = (x - x.mean(dim=1, keepdim=True)).detach()
print(f"no part along x − mean: {passes(dx, centred)}")
print(f"no part along (1, …, 1): {passes(dx, torch.ones_like(dx))}")
