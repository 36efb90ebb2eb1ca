"""What += means where: between programs, and between microbatches."""

# %% setup
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% store
@triton.jit
def count_kernel(x_ptr, out_ptr, BLOCK: tl.constexpr, ATOMIC: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    if ATOMIC:
        tl.atomic_add(out_ptr, tl.sum(x, axis=0))
    else:
        tl.store(out_ptr, tl.sum(x, axis=0))


ones = torch.ones(8 * 1024, device=device)
out = torch.zeros(1, device=device)
count_kernel[(8,)](ones, out, BLOCK=1024, ATOMIC=False)
print(f"8 programs store 1024 each: {out.item()}")

# %% atomic
out.zero_()
count_kernel[(8,)](ones, out, BLOCK=1024, ATOMIC=True)
print(f"8 programs add 1024 each: {out.item()}")


# %% microbatches
class FreshGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return w * x

    @staticmethod
    def backward(ctx, dy):
        x, _ = ctx.saved_tensors
        return None, (dy * x).sum()


x = torch.tensor([1.0, 2.0, 3.0], device=device)
w = torch.nn.Parameter(torch.tensor(1.0, device=device))
for part in x.split(1):
    FreshGradient.apply(part, w).sum().backward()
    print(f"w.grad: {w.grad.item()}")
print(f"the whole batch at once: {x.sum().item()}")


# %% adding-it-yourself
class AddsToGrad(FreshGradient):
    @staticmethod
    def backward(ctx, dy):
        x, w = ctx.saved_tensors
        dw = (dy * x).sum()
        return None, dw if w.grad is None else w.grad + dw


w.grad = None
for part in x.split(1):
    AddsToGrad.apply(part, w).sum().backward()
    print(f"w.grad: {w.grad.item()}")

# %% bf16-grad
MICROBATCHES = 1024
for dtype in (torch.bfloat16, torch.float32):
    w = torch.nn.Parameter(torch.tensor(1.0, device=device, dtype=dtype))
    x = torch.tensor([1e-3], device=device, dtype=dtype)
    for _ in range(MICROBATCHES):
        FreshGradient.apply(x, w).sum().backward()
    print(f"{dtype}: .grad: {w.grad.item():.4f}, true sum: {MICROBATCHES * x.item():.4f}")

# %% main-grad
w = torch.nn.Parameter(torch.tensor(1.0, device=device, dtype=torch.bfloat16))
main_grad = torch.zeros((), device=device, dtype=torch.float32)


def move_into_main_grad(parameter):
    main_grad.add_(parameter.grad.float())
    parameter.grad = None


w.register_post_accumulate_grad_hook(move_into_main_grad)
x = torch.tensor([1e-3], device=device, dtype=torch.bfloat16)
for _ in range(MICROBATCHES):
    FreshGradient.apply(x, w).sum().backward()
print(f"fp32 main gradient: {main_grad.item():.4f}, true sum: {MICROBATCHES * x.item():.4f}")
