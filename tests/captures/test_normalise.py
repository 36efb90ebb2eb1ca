import pytest

from captures.normalise import claims, normalise
from captures.transcript import Output


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("<function f at 0x7f3a5c0b2d40>", "<function f at 0x…>"),
        ("ptr=0x55d0c0ffee10", "ptr=0x…"),
        ('File "/home/ada/venv/lib/python3.12/torch/x.py", line 3', 'File "…/x.py", line 3'),
        ("/tmp/tmpab12cd34/out.txt", "…/out.txt"),
        ("wrote /tmp/tmpab12cd34", "wrote …/tmp…"),
        (r"C:\Users\ada\x.py", "…/x.py"),
        ("process id 4711 ended", "process id … ended"),
    ],
)
def test_volatile_text_is_replaced(said: str, kept: str) -> None:
    assert normalise(said) == kept
    assert normalise(kept) == kept


@pytest.mark.parametrize(
    "claim",
    [
        "0.5 -1.25e-07 32768 1,024 nan inf",
        "torch.float32 torch.bfloat16 fp16 bf16 float8_e4m3fn",
        "cuda:0 cpu device='cuda:0' sm_90",
        "bits 0x3f800000 0x7fc00000 0xffffffff 0x3ff0000000000000",
        "4101 GB/s and 5/6 of 1/2/3, a / b",
        "pid 3, pid (0, 0, 0)",
        "grad_fn=<GELUBackward> tensor([6.])",
        "https://pytorch.org/docs/stable/autograd.html",
        "dW/dx = 0.5/0.25",
    ],
)
def test_no_claim_is_touched(claim: str) -> None:
    assert normalise(claim) == claim


def test_digits_are_masked_only_where_measured() -> None:
    text = "H200 bf16:  4101.5 GB/s in 1e-3 s, -2 % (2,048)"
    assert claims(Output("x", False, text)) == text
    assert claims(Output("x", True, text)) == "H200 bf16: # GB/s in # s, # % (#)"


def test_measured_columns_may_change_their_width() -> None:
    narrow, wide = (Output("x", True, f"gelu {number:>8} GB/s") for number in ("7.5", "4101.25"))
    assert claims(narrow) == claims(wide)


def test_measured_words_remain_claims() -> None:
    assert claims(Output("x", True, "fp16 faster")) != claims(Output("x", True, "bf16 faster"))
