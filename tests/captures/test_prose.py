import textwrap

import pytest

from captures.prose import check_prose


def faults(sandbox, text: str) -> list[str]:
    sandbox.write("docs/lessons/x.md", textwrap.dedent(text))
    return [str(fault) for fault in check_prose(sandbox.project)]


@pytest.mark.parametrize(
    ("text", "figure"),
    [
        ("It reaches 0.5 of it.", "0.5"),
        ("About -3.2e-4 of it.", "-3.2e-4"),
        ("A step of 1e-3 is lost.", "1e-3"),
        ("It runs at 2666 GB/s here.", "2666 GB/s"),
        ("It spills 16 KB a thread.", "16 KB"),
        ("That is 50% of the limit.", "50%"),
        ("It takes 12 ms.", "12 ms"),
        ("It is 3× faster.", "3×"),
        ("It raises RuntimeError: no grad at all.", "RuntimeError: no grad at all."),
        ("It raises `RuntimeError: no grad`.", "RuntimeError: no grad"),
        ("| a | 0.5 |\n|---|---|\n| b | c[^1] |\n\n[^1]: sheet", "0.5"),
        ("The first is 0.5. The second is 3[^1].\n\n[^1]: sheet", "0.5"),
        ("!!! note\n    It reaches 0.5 of it.", "0.5"),
        ("- It reaches 0.5 of it.", "0.5"),
        ('::: run a/one#plot "It stalls at 0.5."', "0.5"),
    ],
)
def test_figures_typed_by_hand_are_refused(sandbox, text: str, figure: str) -> None:
    (fault,) = faults(sandbox, text)
    assert f"'{figure}' is typed by hand" in fault


@pytest.mark.parametrize(
    "text",
    [
        "[0.5](capture:a/one#claim) and [`0.5`][r]\n\n[r]: capture:a/one#claim",
        "[](capture:a/one#claim:gbps) GB/s",
        "$x = 0.5 x$ and $$\n0.5\n$$ and \\(0.5\\)",
        "The tile `x * 0.5` and ``1e-3``.",
        "```\n0.5 GB/s\nRuntimeError: x\n```",
        "Text.\n\n    0.5 GB/s\n",
        "It has 3.35 TB/s.[^h100]\n\n[^h100]: Data sheet, 3.35 TB/s,\n    and 1.2 more.",
        "| 3.35 TB/s[^1] |\n|---|\n\n[^1]: Data sheet",
        "Python 3.11, PyTorch 2.13 and Triton 3.6.0 do.",
        "version 1.2.3 of it",
        "Three kernels, 5 runs, 2 by 3, 2×3, 32,768 additions, fp16 and H100.",
        '![plot](x.svg){ width="0.5" }',
        "[link](https://host/2.13/page)",
        '<div style="width: 0.5em">text</div>',
        "---\ndescription: 0.5\n---\n\ntext",
        "RuntimeError is raised. An error: none.",
        "<!-- 0.5 GB/s -->",
    ],
)
def test_what_a_run_or_a_source_stands_behind_passes(sandbox, text: str) -> None:
    assert faults(sandbox, text) == []


def test_lines_and_order(sandbox) -> None:
    found = faults(sandbox, "---\nx: 1\n---\n\nA 0.5\nand 0.6.\n\nThen 2 ms.\n")
    assert [fault.split(": ")[0] for fault in found] == [
        "docs/lessons/x.md:5",
        "docs/lessons/x.md:6",
        "docs/lessons/x.md:8",
    ]


def test_only_lessons_are_judged(sandbox) -> None:
    sandbox.write("docs/index.md", "0.5 GB/s")
    assert check_prose(sandbox.project) == []
