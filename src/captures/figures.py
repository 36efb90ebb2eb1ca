"""How plots look: the style that examples are drawn in, and what makes it fit a dark page."""

# Stands in for "the colour of text" until the plot is saved; no example draws in it.
_INK = "010203"

# Set for every example, so that a script plots with plain matplotlib and no helper. Line colours
# keep a contrast of 3 on white and on the dark theme; all else takes the colour of text.
STYLE = f"""\
svg.hashsalt: captures
svg.fonttype: none
savefig.transparent: True
savefig.bbox: tight
figure.figsize: 7, 4
figure.facecolor: none
axes.facecolor: none
axes.edgecolor: {_INK}
axes.labelcolor: {_INK}
axes.titlecolor: {_INK}
axes.spines.top: False
axes.spines.right: False
axes.prop_cycle: cycler("color", ["2f7ed8", "c9591b", "23935f", "a45cc4", "98761a", "cf4a72"])
text.color: {_INK}
xtick.color: {_INK}
ytick.color: {_INK}
grid.color: {_INK}
grid.alpha: 0.2
legend.frameon: False
"""

# An image follows the colour scheme of the page that holds it.
_THEME = (
    b"<style>:root{color:#212121}@media(prefers-color-scheme:dark){:root{color:#e2e4e9}}</style>"
)


def themed(svg: bytes) -> bytes:
    """The plot with its ink in the colour of the page's text, light or dark."""
    head, tag, rest = inked(svg).partition(b"<svg")
    attributes, close, body = rest.partition(b">")
    return head + tag + attributes + close + b"\n" + _THEME + body


def inked(svg: bytes) -> bytes:
    """Black as ink too: an example may draw in it, and on a dark page it would not be seen."""
    for colour in (_INK, "000000"):
        svg = svg.replace(f"#{colour}".encode(), b"currentColor")
    return svg
