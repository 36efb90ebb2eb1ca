import textwrap

import pytest

from captures.plain import plain


@pytest.mark.parametrize(
    ("material", "expected"),
    [
        ('!!! note "Title"\n\n    text\n\nafter', "> **Title**\n>\n> text\n\nafter"),
        ("!!! warning\n    text", "> **Warning**\n>\n> text\n"),
        ('!!! note ""\n    text', "> text\n"),
        ('???+ tip "A"\n    text', "> **A**\n>\n> text\n"),
        ('=== "GPU"\n\n    a\n\n=== "CPU"\n\n    b', "**GPU**\n\na\n\n**CPU**\n\nb\n"),
        ('- x\n\n    === "A"\n\n        a', "- x\n\n    **A**\n\n    a\n"),
        ('!!! note "N"\n\n    === "A"\n\n        a', "> **N**\n>\n> **A**\n>\n> a\n"),
        ("# X { #x }", "# X"),
        ("text\n{: .label #a }", "text"),
        ("[a](b){ .c } and ![d](e){ .f g=1 }", "[a](b) and ![d](e)"),
        ('```{ .python .run-code data-run="a" }\n{: .x }\n```', "```python\n{: .x }\n```"),
        ('```python title="x.py"\n!!! note\n```', "```python\n!!! note\n```"),
        ("x = {a: 1} $\\frac{.5}{2}$", "x = {a: 1} $\\frac{.5}{2}$"),
        ("`{ .x }` stays", "`{ .x }` stays"),
        ("# X { #x }\n\n[up](#x)", '# X<a id="x"></a>\n\n[up](#x)'),
        ("text\n{: .label #a }\n\n[up](#a)", 'text\n<a id="a"></a>\n\n[up](#a)'),
        ("text\n{ #a }\n\n[up](#a)", 'text\n<a id="a"></a>\n\n[up](#a)'),
        ('!!! note "N"\n    # X { #x }\n\n[up](#x)', '> **N**\n>\n> # X<a id="x"></a>\n\n[up](#x)'),
    ],
)
def test_material_becomes_plain(material: str, expected: str) -> None:
    assert "\n".join(plain(textwrap.dedent(material).split("\n"))) == expected
