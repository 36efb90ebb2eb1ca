import pytest

from captures import memory
from captures.check import check
from captures.library import library
from captures.memory import Memory, Shelf


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "memory.json"


def ask(kept: Memory, *texts: str, kind: str = "length") -> bool:
    """Whether it had to be worked out."""
    worked: list[bool] = []

    def work() -> int:
        worked.append(True)
        return sum(map(len, texts))

    assert kept.recall(kind, *texts, work=work) == sum(map(len, texts))
    return bool(worked)


def test_what_was_saved_is_recalled(path) -> None:
    first = Memory(path)
    assert ask(first, "a", "bc")
    assert not ask(first, "a", "bc")
    first.save()
    assert not ask(Memory(path), "a", "bc")


def test_another_text_kind_or_code_is_another_thing(path, monkeypatch) -> None:
    first = Memory(path)
    ask(first, "a", "bc")
    first.save()
    assert ask(Memory(path), "ab", "c")
    assert ask(Memory(path), "a", "bc", kind="other")
    monkeypatch.setattr(memory, "_own_code", lambda: b"edited")
    assert ask(Memory(path), "a", "bc")


@pytest.mark.parametrize("content", ['{"cut', "[1]", "", "\0"])
def test_a_damaged_file_is_an_empty_one(path, content: str) -> None:
    path.parent.mkdir()
    path.write_text(content)
    damaged = Memory(path)
    assert ask(damaged, "a")
    damaged.save()
    assert not ask(Memory(path), "a")


def test_what_nobody_asks_for_is_forgotten(path) -> None:
    first = Memory(path)
    ask(first, "a")
    first.save()
    second = Memory(path)
    ask(second, "b")
    second.save()
    assert ask(Memory(path), "a")
    assert [file.name for file in path.parent.iterdir()] == ["memory.json"]


def test_who_asks_for_little_makes_nobody_forget(path) -> None:
    first = Memory(path)
    ask(first, "a")
    first.save()
    second = Memory(path)
    ask(second, "b")
    second.save(forget=False)
    third = Memory(path)
    assert not ask(third, "a")
    assert not ask(third, "b")


def make(shelf: Shelf, name: str, *texts: str, made: object = "it") -> bool:
    """Whether it had to be made."""
    worked: list[bool] = []

    def work() -> object:
        worked.append(True)
        return made

    assert shelf.recall(name, texts, work) == made
    return bool(worked)


def test_a_shelf_holds_what_was_last_made_under_each_name(tmp_path) -> None:
    assert make(Shelf(tmp_path), "pages/a", "x")
    assert make(Shelf(tmp_path), "pages/b", "x", made={"y": 1})
    assert not make(Shelf(tmp_path), "pages/a", "x")
    assert not make(Shelf(tmp_path), "pages/b", "x", made={"y": 1})
    assert make(Shelf(tmp_path), "pages/a", "z")
    assert make(Shelf(tmp_path), "pages/a", "x")
    assert sorted(tmp_path.rglob("*.*")) == [tmp_path / "pages/a.json", tmp_path / "pages/b.json"]


def test_none_is_not_kept(tmp_path) -> None:
    assert make(Shelf(tmp_path), "a", "x", made=None)
    assert make(Shelf(tmp_path), "a", "x")


def test_a_check_remembers_and_judges_the_same(sandbox) -> None:
    sandbox.write(
        "src/gk/gelu.py", "import requests\n\n\ndef gelu(x):\n    return requests.get(x)\n"
    )
    sandbox.example(
        "a/one", '# %% claim\nfrom gk.gelu import gelu\n\nprint("typed", gelu)\nprint("it")\n'
    )
    first = check(sandbox.project)
    assert (sandbox.project.cache / "memory.json").is_file()
    library.cache_clear()
    assert check(sandbox.project) == first
    assert any("requests" in fault.message for fault in first.errors)
    sandbox.write("src/gk/gelu.py", "def gelu(x):\n    return x\n")
    assert not any("requests" in fault.message for fault in check(sandbox.project).errors)
