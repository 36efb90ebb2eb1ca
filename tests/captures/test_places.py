from captures.places import shown_at
from captures.shown import Shown

FORMS = [
    Shown("docs/a.md", 3, "run", "a/one", "launch"),
    Shown("docs/b.md", 9, "quote", "a/one", "sum"),
    Shown("docs/b.md", 9, "value", "a/one", "sum"),
    Shown("docs/b.md", 12, "run", "a/one", "setting"),
    Shown("docs/c.md", 1, "source", "a/one", "launch"),
]


def test_a_cell_is_shown_where_a_form_names_it() -> None:
    assert shown_at(FORMS, "a/one", "sum") == "docs/b.md:9"


def test_a_cell_without_a_form_is_shown_where_its_example_is() -> None:
    assert shown_at(FORMS, "a/one", "setup") == "docs/a.md:3, docs/b.md:9 and 1 more line"
    assert shown_at(FORMS, "a/two") == "no page"
