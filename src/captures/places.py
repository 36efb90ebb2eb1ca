"""Where the pages show an example."""

from collections import Counter

from captures.shown import Shown


def shown_at(forms: list[Shown], example: str, cell: str = "") -> str:
    """The first line of each page that shows this example (and cell, if any form shows it).

    ``docs/a.md:3 and 2 more lines, docs/b.md:9``, or "no page".
    """
    of_example = [form for form in forms if form.kind != "source" and form.target == example]
    of_cell = [form for form in of_example if form.cell == cell]
    lines = sorted({(form.page, form.line) for form in of_cell or of_example})
    counts = Counter(page for page, _ in lines)
    first = dict(reversed(lines))
    places = [f"{page}:{first[page]}{_more(count - 1)}" for page, count in counts.items()]
    return ", ".join(places) or "no page"


def _more(count: int) -> str:
    return f" and {count} more line{'s' * (count > 1)}" if count else ""
