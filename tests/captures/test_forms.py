import textwrap

import pytest

from captures.forms import parse, read_pages


def forms(text: str, first_line: int = 1):
    return parse(textwrap.dedent(text), "docs/x.md", first_line)


def found(text: str) -> list[tuple]:
    shown, faults = forms(text)
    assert not faults, faults
    return [(form.line, form.kind, form.target, form.cell or form.key) for form in shown]


def faults_of(text: str) -> list[str]:
    return [str(fault) for fault in forms(text)[1]]


def test_the_four_forms_with_their_lines() -> None:
    text = """\
    ::: run a/one#launch

    ::: source gk.gelu:GELU.backward

    stalls at [0.5](capture:a/one#sum) and [](capture:a/one#speed:gbps@gpu)
    """
    shown, faults = forms(text)
    assert not faults
    assert [(f.line, f.kind, f.target) for f in shown] == [
        (1, "run", "a/one"),
        (3, "source", "gk.gelu"),
        (5, "quote", "a/one"),
        (5, "value", "a/one"),
    ]
    assert shown[1].key == "GELU.backward"
    assert (shown[2].text, shown[2].cell, shown[2].machine) == ("0.5", "sum", "")
    assert (shown[3].key, shown[3].machine) == ("gbps", "gpu")


@pytest.mark.parametrize(
    "container",
    [
        '=== "Tab"\n\n    {}',
        "!!! note\n    {}",
        '??? tip "Folded"\n\n    {}',
        "- item\n\n    {}",
        "1. item\n\n    - inner\n\n        {}",
        '=== "Tab"\n\n    !!! note\n\n        - item\n\n            {}',
        "[^1]: a footnote\n\n    {}",
    ],
)
def test_forms_nest(container: str) -> None:
    text = container.format("::: run a/one#launch")
    (form,), faults = parse(text, "docs/x.md")
    assert not faults
    assert form.indent == " " * (len(text.split("\n")[-1]) - len("::: run a/one#launch"))
    assert text[form.start : form.end].strip() == "::: run a/one#launch"


@pytest.mark.parametrize(
    "text",
    [
        "```\n::: run a/one#launch\n[0.5](capture:a/one#x)\n```",
        "~~~~ md\n::: run a/one#launch\n~~~~",
        "````\n```\n::: run a/one#launch\n```\n````",
        "Text.\n\n    ::: run a/one#launch\n",
        "- item\n\n    ```\n    ::: run a/one#launch\n    ```",
        "<!--\n::: run a/one#launch\n-->",
        "`[0.5](capture:a/one#x)` and ``a `[0.5](capture:a/one#x)` b``",
        "`::: run a/one#launch`",
    ],
)
def test_nothing_is_a_form_in_code(text: str) -> None:
    assert parse(text, "docs/x.md") == ([], [])


def test_reading_goes_on_after_code() -> None:
    assert found("```\n::: run a/b#c\n```\n\n::: run a/one#launch") == [
        (5, "run", "a/one", "launch")
    ]
    assert found("Text.\n\n    code\n\n    code\n\n::: run a/one#launch") == [
        (7, "run", "a/one", "launch")
    ]


def test_mkdocstrings_keeps_its_own_form() -> None:
    assert found("::: gradkernels.gelu\n    options:\n      show_source: false\n\n# ::: gk.x") == []


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("::: rum a/one#launch", "unknown form '::: rum …'"),
        ("::: gradkernels.gelu extra", "unknown form"),
        ("::: run", "expected ::: run lesson/example#cell, got nothing"),
        ("::: run a/one", "expected ::: run lesson/example#cell, got 'a/one'"),
        ("::: run a/one#x y", "got 'a/one#x y'"),
        ('::: run a/one#x "never closed', "got 'a/one#x \"never closed'"),
        ('::: run a/one#x ""', "expected ::: run lesson/example#cell"),
        ('::: source gk.gelu:gelu "words"', "expected ::: source package.module:symbol"),
        ("::: source gk.gelu", "expected ::: source package.module:symbol"),
        ("see ::: run a/one#launch", "a line of its own"),
        ("- ::: run a/one#launch", "a line of its own"),
        ("> ::: run a/one#launch", "a line of its own"),
        ("[0.5](capture:one#x)", "'capture:one#x' is not capture:lesson/example#cell"),
        ("[0.5](capture:a/one)", "is not capture:lesson/example#cell"),
        ("[0.5](capture:a/one#x@tpu)", "there are gpu and cpu"),
        ("[](capture:a/one#x)", "quotes no words"),
        ("[words](capture:a/one#x:key)", "so its text is put in"),
        ("![plot](capture:a/one#x)", "target of an image"),
        ("[](capture:a/one#x:H100 speed)", "'capture:a/one#x:H100 speed' holds a space"),
        ("| a | [](capture:a/one#x:top speed@gpu) |", "write <capture:a/one#x:top speed@gpu>"),
        ("[r]: capture:a/one#x:H100 speed", "'capture:a/one#x:H100 speed' holds a space"),
        ("[0.5](CAPTURE:a/one#x)", "'CAPTURE:a/one#x' has to begin with `capture:`"),
        ("[](Capture:a/one#x:H100 speed)", "'Capture:a/one#x:H100 speed' holds a space"),
        ("[0.5][r]\n\n[r]: <Capture:a/one#x>", "'Capture:a/one#x' has to begin with `capture:`"),
    ],
)
def test_malformed_forms_are_faults(line: str, said: str) -> None:
    (fault,) = faults_of(f"\n\n{line}\n")
    assert fault.startswith("docs/x.md:3: ")
    assert said in fault


def test_links_of_every_make() -> None:
    text = """\
    [`y: 3`](capture:a/one#x), [**0.5**](<capture:a/one#x> "title"), [two
    lines](capture:a/one#x), [full][ref], [Ref][], [ref], [tensor([1., 2.])](capture:a/one#x),
    [see [inner](capture:a/one#x) here], \\[no](capture:a/one#x)

    | a | b |
    |---|---|
    | [6.](capture:a/one#x) | [`a|b`](capture:a/one#x) |

    [ref]: capture:a/one#x
    """
    shown, faults = forms(text)
    assert not faults
    assert [(form.line, form.text) for form in shown] == [
        (1, "y: 3"),
        (1, "0.5"),
        (1, "two lines"),
        (2, "full"),
        (2, "Ref"),
        (2, "ref"),
        (2, "tensor([1., 2.])"),
        (3, "inner"),
        (7, "6."),
        (7, "a|b"),
    ]


def test_a_key_with_a_space_stands_in_angle_brackets() -> None:
    shown, faults = forms(
        "[](<capture:a/one#x:top speed>) [6](capture:a/one#x 'title') `](capture:a b)`"
    )
    assert not faults
    assert [(form.kind, form.key) for form in shown] == [("value", "top speed"), ("quote", "")]


def test_lines_count_from_the_top_of_the_file(sandbox) -> None:
    sandbox.write("docs/x.md", "---\ntitle: X\n---\n\n\n# X\n\n::: run a/one#launch\n")
    sandbox.write("docs/sub/y.md", "::: rum a/one#launch\n")
    (form,), (fault,) = read_pages(sandbox.project)
    assert (form.page, form.line) == ("docs/x.md", 8)
    assert str(fault).startswith("docs/sub/y.md:1: ")
