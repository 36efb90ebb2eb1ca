"""Two backwards that raise nothing and leave w untrained."""

# %% kernel
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def dw_kernel(dy_ptr, x_ptr, dw_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.atomic_add(dw_ptr, tl.sum(dy * x * tl.sigmoid(x), axis=0))


x = torch.tensor([-1.0, 0.5, 2.0], device=device)


# %% none-for-w
class ForgetsW(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        return None, None


w = torch.nn.Parameter(torch.tensor(1.5, device=device))
optimizer = torch.optim.SGD([w], lr=0.1)
ForgetsW.apply(x, w).sum().backward()
optimizer.step()
print(f"w.grad: {w.grad}")
print(f"w after a step: {w.item()}")


# %% thrown-away-copy
class ThrownAway(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * x * torch.sigmoid(x)

    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dw = torch.zeros_like(w)
        dw_kernel[(1,)](dy.contiguous(), x, dw.float(), x.numel(), BLOCK=4)
        return None, dw


for dtype in (torch.float32, torch.bfloat16):
    w = torch.nn.Parameter(torch.tensor(1.5, device=device, dtype=dtype))
    ThrownAway.apply(x, w).sum().backward()
    print(f"{dtype}: w.grad is zero: {w.grad.item() == 0.0}")


# %% mended
class KeepsTheBuffer(ThrownAway):
    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dw = torch.zeros((), device=w.device, dtype=torch.float32)
        dw_kernel[(1,)](dy.contiguous(), x, dw, x.numel(), BLOCK=4)
        return None, dw.to(w.dtype)


for dtype in (torch.float32, torch.bfloat16):
    w = torch.nn.Parameter(torch.tensor(1.5, device=device, dtype=dtype))
    KeepsTheBuffer.apply(x, w).sum().backward()
    print(f"{dtype}: w.grad is zero: {w.grad.item() == 0.0}")

# %% a-test-that-sees-it
for node in (ForgetsW, ThrownAway, KeepsTheBuffer):
    w = torch.nn.Parameter(torch.tensor(1.5, device=device, dtype=torch.bfloat16))
    node.apply(x, w).sum().backward()
    trains = w.grad is not None and bool(w.grad.any())
    print(f"{node.__name__}: w trains: {trains}")
