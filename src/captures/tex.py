"""TeX in a rendered notebook as MathML: such pages pass by the Markdown extensions of the site."""

import html
import re

from math_core import LatexError, LatexToMathML

# Nothing is TeX in code, in what the browser does not show, or within a tag.
_MARKUP = re.compile(r"(<(pre|code|style|script)\b.*?</\2>|<[^>]+>)", re.DOTALL)
_FORMULA = re.compile(r"\$\$(?P<display>.+?)\$\$|\$(?P<inline>\S(?:[^$\n]*\S)?)\$", re.DOTALL)


def with_mathml(page: str) -> str:
    """The HTML with `$…$` and `$$…$$` replaced; what is no TeX stays, and fails in the lesson."""
    converter = LatexToMathML(fancy_error=False)

    def formula(found: re.Match[str]) -> str:
        tex = html.unescape(found["display"] or found["inline"]).strip()
        try:
            return converter.convert_with_local_state(tex, displaystyle=bool(found["display"]))
        except LatexError:
            return found.group()

    pieces = _MARKUP.split(page)
    pieces[::3] = [_FORMULA.sub(formula, text) for text in pieces[::3]]
    del pieces[2::3]  # the names of the tags
    return "".join(pieces)
