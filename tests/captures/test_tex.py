from captures.tex import with_mathml


def test_formulas_become_mathml() -> None:
    page = with_mathml("<p>so $a_1 &lt; b$ and</p><p>$$\ny = x\n$$</p>")
    assert "$" not in page
    assert page.count("<math") == 2 and 'display="block"' in page
    assert page.startswith("<p>so <math>") and page.endswith("</math></p>")


def test_all_else_stays() -> None:
    page = (
        '<pre>$a$</pre><code class="x">$a$</code><style>$a$</style><p title="$a$">costs $5, '
        "or $ 6 $, $\\nonsense$</p>"
    )
    assert with_mathml(page) == page
