import json

import pytest

from captures.fault import Faults
from captures.memory import Shelf
from captures.published import Published
from captures.resolve import Resolver

SCRIPT = "# %% setup\nfrom gk.gelu import gelu\n\n# %% claim\nprint(gelu(1))\n"


@pytest.fixture
def house(sandbox):
    sandbox.write("src/gk/gelu.py", "def gelu(x):\n    return 2 * x\n")
    sandbox.example("a/one", SCRIPT)
    sandbox.record("a/one", {"setup": "", "claim": "2"})
    sandbox.write("docs/lessons/one.md", "# One\n\n::: run a/one#claim\n")
    return sandbox


def published(house) -> Published:
    return Published(Resolver(house.project), Shelf(house.project.cache / "build"))


def everything(house) -> dict[str, str]:
    now = published(house)
    page = house.project.docs / "lessons/one.md"
    return now.scripts("a/one") | {"lessons": now.lessons(), "notebook": now.notebook(page, "")}


def doctored(house) -> dict[str, str]:
    """Everything, after what was kept has been marked."""
    for path in (house.project.cache / "build").rglob("*.json"):
        kept = json.loads(path.read_text())
        marked = json.dumps(kept["made"]).replace("One", "Recalled").replace("gelu", "recalled")
        path.write_text(json.dumps(kept | {"made": json.loads(marked)}))
    return everything(house)


def test_the_files_of_an_example(house) -> None:
    files = published(house).scripts("a/one")
    assert list(files) == ["scripts/a/one.py", "standalone/a/one.py", "runnable/a/one/claim.py"]
    assert files["scripts/a/one.py"] == SCRIPT
    assert "def gelu" in files["standalone/a/one.py"]


def test_what_nothing_has_changed_is_recalled(house) -> None:
    first = everything(house)
    recalled = {name for name, text in doctored(house).items() if text != first[name]}
    assert recalled == set(first) - {"scripts/a/one.py"}


@pytest.mark.parametrize(
    ("path", "old", "new", "anew"),
    [
        ("src/gk/gelu.py", "2 *", "3 *", {"standalone", "runnable", "notebook", "lessons"}),
        ("examples/a/one.py", "(1)", "(2)", {"standalone", "runnable", "notebook", "lessons"}),
        ("docs/lessons/one.md", "# One", "# First", {"notebook", "lessons"}),
    ],
)
def test_what_a_file_is_made_of_makes_it_anew(house, path, old, new, anew) -> None:
    everything(house)
    text = (house.project.root / path).read_text()
    house.write(path, text.replace(old, new))
    files = doctored(house)
    fresh = {name.partition("/")[0] for name, text in files.items() if "ecalled" not in text}
    assert fresh - {"scripts"} == anew


def test_an_example_that_cannot_stand_alone_is_a_fault_each_time(house) -> None:
    house.example("a/one", "# %% claim\nimport requests\n\nprint(requests)\n")
    for _ in range(2):
        with pytest.raises(Faults, match="imports requests"):
            published(house).scripts("a/one")
