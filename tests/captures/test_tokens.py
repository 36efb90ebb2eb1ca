import pytest

from captures.tokens import stands


@pytest.mark.parametrize(
    ("words", "text", "stand"),
    [
        ("0.5", "sum 0.5 bf16", True),
        ("0.5", "(0.5, 1)", True),
        ("0.5", "ends in 0.5.", True),
        ("0.5", "x=0.5", True),
        ("0.5", "10.5", False),
        ("0.5", "0.57", False),
        ("0.5", "-0.5", False),
        ("-0.5", "-0.5", True),
        ("0.5", "0.5e-3", False),
        ("5", "1e-5", False),
        ("5", "5.0", False),
        ("5.", "5.0", False),
        ("6.", "tensor([6., 6.])", True),
        ("1", "1,000", False),
        ("000", "1,000", False),
        ("50", "50%", False),
        ("50%", "50%", True),
        ("0", "cuda:0", False),
        ("16", "fp16", False),
        ("float16", "torch.float16", True),
        ("float", "torch.float16", False),
        ("contiguous", "non-contiguous", False),
        ("grad_fn", "y.grad_fn: None", True),
        ("RuntimeError: no grad", "RuntimeError:  no\n grad", True),
        ("RuntimeError", "MyRuntimeError", False),
        ("tensor([6.])", "x.grad: tensor([6.])", True),
        (".*", "anything", False),
    ],
)
def test_whole_tokens(words: str, text: str, stand: bool) -> None:
    assert stands(words, text) is stand
