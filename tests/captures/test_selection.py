import pytest

from captures.fault import Faults
from captures.selection import select


def test_an_example_is_meant_by_name_lesson_or_path(sandbox, monkeypatch) -> None:
    for name in ("a/one", "a/two", "ab/three"):
        sandbox.example(name, "# %% one\n")
    project = sandbox.project
    assert select(project, []) == ["a/one", "a/two", "ab/three"]
    assert select(project, ["a"]) == ["a/one", "a/two"]
    assert select(project, ["a/", "a/one"]) == ["a/one", "a/two"]
    assert select(project, ["examples/a/two.py", "ab/three.py"]) == ["a/two", "ab/three"]
    monkeypatch.chdir(project.examples / "a")
    assert select(project, ["two.py"]) == ["a/two"]
    assert select(project, ["."]) == ["a/one", "a/two"]


def test_an_unknown_example_names_near_ones(sandbox) -> None:
    sandbox.example("graph_node/invisible", "# %% one\n")
    with pytest.raises(Faults) as caught:
        select(sandbox.project, ["graph_node/invisibel", "invisible", "zzz"])
    near, stem, none = map(str, caught.value.faults)
    assert "did you mean graph_node/invisible" in near
    assert stem.endswith("did you mean graph_node/invisible?")
    assert none.startswith("zzz: there is no such example")
