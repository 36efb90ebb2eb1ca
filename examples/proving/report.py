"""prove on a right backward and on a wrong one, with a reference and without."""

# %% setup
import torch
import torch.nn.functional as F
import triton

from gradkernels.gelu import gelu, gelu_backward_kernel, gelu_forward
from gradproof.prove import prove

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.manual_seed(0)
x = torch.randn(6, 40, device=device)

# %% right
print(prove(gelu, (x,), reference=F.gelu))


# %% strideless
class Strideless(torch.autograd.Function):
    @staticmethod
    def forward(x):
        return gelu_forward(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        dx = torch.empty_like(x)
        gelu_backward_kernel[(triton.cdiv(x.numel(), 64),)](dy, x, dx, x.numel(), 64)
        return dx


def strideless(x):
    return Strideless.apply(x.contiguous())


# %% wrong
report = prove(strideless, (x,), reference=F.gelu)
print(report)

# %% parts
print(f"ok: {report.ok}")
print(f"traps: {', '.join(report.traps)}")
print(f"seen-by: {', '.join(report.seen_by)}")
for finding in report.findings:
    print(f"beside: {finding.beside}")

# %% raise
try:
    report.raise_if_failed()
except AssertionError as error:
    print(f"AssertionError: {str(error).splitlines()[0]}")
else:
    raise AssertionError("a failed report did not raise")
