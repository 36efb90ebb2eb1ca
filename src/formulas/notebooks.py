"""A hook of MkDocs: notebook pages as quiet as the others.

nbconvert leaves formulas and diagrams to scripts of other hosts.
"""

import re
from typing import Any

from math_core import LatexError
from mkdocs.exceptions import PluginError

from formulas import in_html


def on_page_content(html: str, *, page: Any, **_: Any) -> str:
    if not page.file.src_uri.endswith(".ipynb"):
        return html
    try:
        return in_html(re.sub(r"<script\b.*?</script>", _unless_foreign, html, flags=re.DOTALL))
    except LatexError as error:
        raise PluginError(f"{page.file.src_uri}: a formula cannot be read: {error}") from None


def _unless_foreign(script: re.Match[str]) -> str:
    return "" if re.search(r"MathJax|https?://|src=", script[0]) else script[0]
