"""TeX in pages becomes MathML while the site is built, so that readers need no JavaScript for it.

A Markdown extension, listed as ``formulas`` after ``pymdownx.arithmatex`` (``generic: true``),
which finds ``$…$`` and ``$$…$$``. TeX that cannot be read is reported as ``page:line`` and fails
a strict build; every such fault of every page is reported in one go.
"""

import logging
import re
from html import unescape
from xml.etree.ElementTree import Element

from markdown import Markdown
from markdown.extensions import Extension
from markdown.treeprocessors import Treeprocessor
from markdown.util import AtomicString
from math_core import LatexError, LatexToMathML

# A warning of this logger is counted by MkDocs, whose strict build then fails.
log = logging.getLogger("mkdocs.formulas")


class FormulasExtension(Extension):
    def extendMarkdown(self, md: Markdown) -> None:  # noqa: N802 - Python-Markdown's name
        # After inline patterns (20), which make the elements that hold inline TeX.
        md.treeprocessors.register(FormulasTreeprocessor(md), "formulas", 15)


class FormulasTreeprocessor(Treeprocessor):
    """Puts MathML where arithmatex left TeX between ``\\(…\\)`` or ``\\[…\\]``."""

    def __init__(self, md: Markdown):
        super().__init__(md)
        self.converter = LatexToMathML(fancy_error=False)

    def run(self, root: Element) -> None:
        for element in root.iter():
            if element.get("class") == "arithmatex":
                self.replace(element)

    def replace(self, element: Element) -> None:
        delimited = (element.text or "").strip()
        tex = unescape(delimited[2:-2].strip())
        try:
            mathml = self.converter.convert_with_local_state(
                tex, displaystyle=delimited.startswith("\\[")
            )
        except LatexError as error:
            self.report(tex, str(error))
        else:
            # Stashed as raw HTML: MathML may hold entities that ElementTree does not know.
            element.text = AtomicString(self.md.htmlStash.store(mathml))

    def report(self, tex: str, problem: str) -> None:
        reason = re.sub(r"^\d+: ", "", problem)  # an offset into the formula, not into the page
        message = f"the formula {tex!r} is not TeX that math-core reads: {reason}"
        page = page_of(self.md)
        if page is None:
            raise ValueError(message)
        log.warning("docs/%s:%d: %s", page.src_uri, line_of(tex, page.content_string), message)


def in_html(html: str) -> str:
    """``html`` with MathML in the place of ``$…$`` and ``$$…$$``, code left alone.

    For what other programs rendered, which hand TeX over to a script. Raises ``LatexError``.
    """
    converter = LatexToMathML(fancy_error=False)

    def mathml(found: re.Match) -> str:
        tex = found["display"] or found["inline"]
        if tex is None:
            return found[0]
        return converter.convert_with_local_state(
            unescape(tex), displaystyle=bool(found["display"])
        )

    return TEX_OR_MARKUP.sub(mathml, html)


TEX_OR_MARKUP = re.compile(
    r"<(?P<verbatim>pre|code|style|svg)\b.*?</(?P=verbatim)>|<[^>]*>"
    r"|\$\$(?P<display>[^$<]+)\$\$|\$(?P<inline>[^\s$<](?:[^$<]*[^\s$<])?)\$",
    re.DOTALL,
)


def page_of(md: Markdown):
    """The page in work, as MkDocs hands it over; None under any other program."""
    try:
        return md.treeprocessors["relpath"].file
    except (KeyError, AttributeError):
        return None


def line_of(tex: str, text: str) -> int:
    """The first line of a page's ``text`` where the formula ``tex`` begins."""
    start = re.escape(tex.splitlines()[0].strip())
    beginning = re.compile(rf"(?:\$|\\\(|\\\[)\s*{start}|^[\s>]*{start}\s*$")
    lines = text.splitlines()
    return next((n for n, line in enumerate(lines, 1) if beginning.search(line)), 1)


def makeExtension(**options) -> FormulasExtension:  # noqa: N802 - Python-Markdown's name
    return FormulasExtension(**options)
