import logging
from types import SimpleNamespace

import markdown
import pytest

from formulas import in_html, line_of

ARITHMATEX = {"pymdownx.arithmatex": {"generic": True}}


def converter(text: str = "") -> markdown.Markdown:
    """Python-Markdown as MkDocs sets it up for the page ``x.md`` that holds ``text``."""
    md = markdown.Markdown(
        extensions=["pymdownx.arithmatex", "formulas", "tables"], extension_configs=ARITHMATEX
    )
    page = SimpleNamespace(src_uri="x.md", content_string=text)
    md.treeprocessors.register(SimpleNamespace(file=page, run=lambda root: None), "relpath", 0)
    return md


def test_inline_and_display_formulas_become_mathml():
    html = converter().convert("So $x^2$ is\n\n$$\n\\frac{1}{2}\n$$\n")
    assert "<math><msup><mi>x</mi><mn>2</mn></msup></math>" in html
    assert '<math display="block"><mfrac>' in html
    assert "\\(" not in html
    assert "\\[" not in html


def test_signs_that_html_escapes():
    html = converter().convert("If $x > y$ then\n\n$$\na < b\n$$\n")
    assert "<mi>x</mi><mo>&gt;</mo><mi>y</mi>" in html
    assert "<mi>a</mi><mo>&lt;</mo><mi>b</mi>" in html


def test_a_formula_in_a_table_and_in_a_heading():
    html = converter().convert("# The $x$\n\n| a |\n|---|\n| $y$ |\n")
    assert "<h1>" in html
    assert "<mi>x</mi>" in html
    assert "<td><span" in html
    assert "<mi>y</mi>" in html


def test_entities_and_comparisons_survive():
    html = converter().convert(r"$\operatorname{rms}(x) < 1$")
    assert "<mo>&lt;</mo>" in html


def test_every_bad_formula_of_a_page_is_reported_with_its_line(caplog):
    text = "---\ntitle: t\n---\n\nHere $\\nosuch{x}$ and\n\n$$\n\\frac{1}{\n$$\n"
    with caplog.at_level(logging.WARNING, "mkdocs.formulas"):
        converter(text).convert(text.split("---\n", 2)[2])
    first, second = caplog.messages
    assert first.startswith("docs/x.md:5: the formula '\\\\nosuch{x}' is not TeX")
    assert "Unknown command" in first
    assert second.startswith("docs/x.md:8: ")


def test_outside_mkdocs_a_bad_formula_raises():
    md = markdown.Markdown(
        extensions=["pymdownx.arithmatex", "formulas"], extension_configs=ARITHMATEX
    )
    with pytest.raises(ValueError, match="Unknown command"):
        md.convert("$\\nosuch$")


@pytest.mark.parametrize(
    ("text", "line"),
    [("a\n$x$ b", 2), ("a\n\n    $$\n    x\n    $$", 4), ("> $x$", 1), ("x is\nnot $x$", 2)],
)
def test_the_line_is_that_of_the_formula(text, line):
    assert line_of("x", text) == line


def test_formulas_in_html_that_another_program_rendered():
    html = in_html("<p>If $x &lt; 1$ then\n$$\n\\frac{1}{2}\n$$</p><pre>cost: $5 or $6</pre>")
    assert "<mi>x</mi><mo>&lt;</mo><mn>1</mn>" in html
    assert '<math display="block"><mfrac>' in html
    assert "<pre>cost: $5 or $6</pre>" in html


@pytest.mark.parametrize("html", ["<p>$5 and $ 6</p>", "<code>$x$</code>", '<a title="$x$">y</a>'])
def test_a_dollar_that_is_no_formula_stays(html):
    assert in_html(html) == html
