"""In which layouts dy arrives, and what a kernel makes of it that expects that of x."""

# %% setup
import torch
import triton

from gradkernels.gelu import gelu, gelu_backward_kernel, gelu_forward

device = "cuda" if torch.cuda.is_available() else "cpu"
x = torch.tensor([[-1.0, 0.5, 2.0], [1.0, -0.5, 0.0]], device=device)
weights = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], device=device)


# %% arrivals
def show_dy(name, loss):
    y = torch.ones(2, 3, device=device, requires_grad=True)

    def show(dy):
        stored = dy.untyped_storage().nbytes() // dy.element_size()
        print(f"{name:10} strides {dy.stride()}, elements in memory {stored}")

    y.register_hook(show)
    loss(y).backward()


show_dy("mean", lambda y: y.mean())
show_dy("sum", lambda y: y.sum())
show_dy("row sums", lambda y: (y.sum(1) ** 2).sum())
show_dy("transposed", lambda y: (weights * y.t()).sum())
show_dy("cat", lambda y: (torch.cat([y, y], 1) ** 2).sum())


# %% naive
class NaiveGELU(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return gelu_forward(x)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        n = x.numel()
        gelu_backward_kernel[(triton.cdiv(n, 1024),)](dy, x, dx, n, 1024)
        return dx


def gradient(function, loss):
    leaf = x.clone().requires_grad_()
    loss(function(leaf))
    return leaf.grad.cpu()


# %% transposed
def through_a_transpose(y):
    (weights * y.t()).sum().backward()


print("torch:")
print(gradient(torch.nn.functional.gelu, through_a_transpose))
print("naive:")
print(gradient(NaiveGELU.apply, through_a_transpose))


# %% broadcast
def through_a_sum(y):
    memory = torch.tensor([1.0, 7.0, 7.0, 7.0, 7.0, 7.0], device=device)
    y.sum().backward(memory[0])


print("torch:")
print(gradient(torch.nn.functional.gelu, through_a_sum))
print("naive:")
print(gradient(NaiveGELU.apply, through_a_sum))

# %% mended
for loss in (through_a_transpose, through_a_sum):
    expected = gradient(torch.nn.functional.gelu, loss)
    print(f"{loss.__name__}:", torch.allclose(gradient(gelu, loss), expected, atol=1e-6))

# %% gradcheck
print("naive:", torch.autograd.gradcheck(NaiveGELU.apply, x.double().requires_grad_()))
