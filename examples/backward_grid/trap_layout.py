"""Trap 3: dy arrives in a layout that the kernel does not expect."""

# %% kernel
import torch
import triton
import triton.language as tl

device = "cuda" if torch.cuda.is_available() else "cpu"


@triton.jit
def square_backward_kernel(dy_ptr, x_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    mask = offsets < n
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0)
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    tl.store(dx_ptr + offsets, 2 * x * dy, mask=mask)


def square_backward(dy, x):
    dx = torch.empty_like(x)
    square_backward_kernel[(1,)](dy, x, dx, x.numel(), BLOCK=8)
    return dx


# %% what-arrives
class Watch(torch.autograd.Function):
    @staticmethod
    def forward(ctx, y):
        return y.clone()

    @staticmethod
    def backward(ctx, dy):
        elements = dy.untyped_storage().nbytes() // dy.element_size()
        print(f"stride {dy.stride()}, {elements} elements in memory")
        return dy


y = torch.ones(2, 3, device=device, requires_grad=True)
Watch.apply(y).mean().backward()
Watch.apply(y).sum().backward()
(Watch.apply(y).t() * torch.ones(3, 2, device=device)).sum().backward()
torch.cat([Watch.apply(y), y], dim=1).mul(y.repeat(1, 2)).mean().backward()


# %% blind
class ReadsDyBlindly(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return square_backward(dy, x)


c = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device=device)
x = torch.ones(2, 3, device=device, requires_grad=True)
(ReadsDyBlindly.apply(x).t() * c).sum().backward()
print(f"dx: {x.grad.tolist()}")
print(f"2·x·dy: {(2 * x * c.t()).tolist()}")


# %% mended
class MakesDyContiguous(ReadsDyBlindly):
    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return square_backward(dy.contiguous(), x.contiguous())


x.grad = None
(MakesDyContiguous.apply(x).t() * c).sum().backward()
print(f"dx: {x.grad.tolist()}")

# %% x-is-a-view
x = torch.arange(6.0, device=device)[::2].requires_grad_()
ReadsDyBlindly.apply(x).mul(torch.ones(3, device=device)).sum().backward()
print(f"x: {x.tolist()}, dx: {x.grad.tolist()}")
x.grad = None
MakesDyContiguous.apply(x).mul(torch.ones(3, device=device)).sum().backward()
print(f"x: {x.tolist()}, dx: {x.grad.tolist()}")


# %% half-mended
class MakesOnlyDyContiguous(ReadsDyBlindly):
    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return square_backward(dy.contiguous(), x)


for node in (MakesOnlyDyContiguous, MakesDyContiguous):
    x = c.t().clone().requires_grad_()
    (node.apply(x) * c.t().contiguous()).sum().backward()
    right = torch.equal(x.grad, 2 * x.detach() * c.t())
    print(f"{node.__name__}: x of stride {x.stride()}, dx right: {right}")
