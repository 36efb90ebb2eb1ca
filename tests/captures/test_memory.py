import pytest

from captures import memory
from captures.check import check
from captures.library import library
from captures.memory import Memory


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
