"""Where the pages show an example."""

from captures.forms import Shown


def shown_at(forms: list[Shown], example: str, cell: str = "") -> list[str]:
    """``page:line`` of every form that shows this example (and cell, if any form shows it)."""
    of_example = [form for form in forms if form.kind != "source" and form.target == example]
    of_cell = [form for form in of_example if form.cell == cell]
    return list(dict.fromkeys(f"{form.page}:{form.line}" for form in of_cell or of_example))
