import pytest

from captures.expand import expand
from captures.fault import Faults

SCRIPT = """
# %% setup
import os

# %% claim
print("sum:", 0.5)

# %% differs
print("type: FloatTensor")
"""


@pytest.fixture
def house(sandbox):
    sandbox.example("a/one", SCRIPT)
    sandbox.write("src/gk/gelu.py", "def gelu(x):\n    return x\n")
    for machine, kind in (("cpu", "FloatTensor"), ("gpu", "cuda.FloatTensor")):
        outputs = {"setup": "", "claim": "sum: 0.5", "differs": f"type: {kind}"}
        sandbox.record("a/one", outputs, machine=machine)
    return sandbox


PAGE = """
---
title: One
---

# One { #one }

!!! note

    ::: run a/one#differs

The sum is [`0.5`](capture:a/one#claim), or [0.5][r], [](capture:a/one#claim:sum).

- item

    ::: source gk.gelu:gelu

```
::: run a/one#nothing
[r]: capture:a/one#claim
```

[r]: capture:a/one#claim
"""


def test_everything_is_in_place_and_nothing_else_is_left(house) -> None:
    house.write("docs/lessons/one.md", PAGE)
    text = expand(house.project)
    assert text.startswith("<!-- docs/lessons/one.md -->\n\n# One\n\n> **Note**\n")
    assert '> ```python\n> print("type: FloatTensor")\n> ```' in text
    assert "> **GPU**\n>\n> Output on **a card**" in text
    assert "> type: cuda.FloatTensor" in text
    assert "The sum is `0.5`, or 0.5, 0.5.\n" in text
    assert "    ```python\n    def gelu(x):\n        return x\n    ```" in text
    before, after = text.split("```\n::: run a/one#nothing\n[r]: capture:a/one#claim\n```")
    for rest in (before, after):
        assert "capture:" not in rest and ":::" not in rest and "{" not in rest


def test_lessons_stand_in_the_order_of_the_navigation(house) -> None:
    for name in ("a", "b", "c"):
        house.write(f"docs/lessons/{name}.md", f"# {name.upper()}\n")
    house.write("mkdocs.yml", "nav:\n  - lessons/c.md\n  - lessons/a.md\n")
    text = expand(house.project)
    assert [text.index(f"# {name}") for name in "CAB"] == sorted(
        text.index(f"# {name}") for name in "CAB"
    )


def test_every_fault_is_raised_at_once(house) -> None:
    house.write("docs/lessons/a.md", "::: run a/one#clam\n")
    house.write("docs/lessons/b.md", "::: rum a/one#claim\n\n[0.6](capture:a/one#claim)\n")
    with pytest.raises(Faults) as raised:
        expand(house.project)
    places = [str(fault).split(": ")[0] for fault in raised.value.faults]
    assert places == ["docs/lessons/a.md:1", "docs/lessons/b.md:1", "docs/lessons/b.md:3"]


@pytest.mark.parametrize(
    "link",
    [
        '<a href="capture:a/one#claim">0.5</a>',
        "\\[0.5](capture:a/one#claim)",
        "[0.5](\ncapture:a/one#claim extra)",
    ],
)
def test_no_target_is_left_over(house, link: str) -> None:
    house.write("docs/lessons/a.md", f"---\ntitle: A\n---\n`capture:a/b#c` {link}\n")
    with pytest.raises(Faults) as raised:
        expand(house.project)
    line = 4 + link.count("\n")
    (fault,) = raised.value.faults
    assert str(fault).startswith(f"docs/lessons/a.md:{line}: 'capture:a/one#claim'")


def test_a_key_with_a_space(house) -> None:
    house.write(
        "docs/lessons/a.md", "[](<capture:a/one#differs:type@gpu>)\n\n[](capture:a/one#claim:a b)\n"
    )
    with pytest.raises(
        Faults, match=r"^docs/lessons/a\.md:3: 'capture:a/one#claim:a b' holds a space"
    ):
        expand(house.project)


def test_links_within_a_page_still_lead_somewhere(house) -> None:
    house.write("docs/lessons/a.md", "# A { #top }\n\n## B { #b }\n\n[up](#top)\n")
    assert '# A<a id="top"></a>\n\n## B\n\n[up](#top)' in expand(house.project)
