import subprocess
from dataclasses import replace

import pytest

from captures.committed import moved_since_commit
from captures.run import run


@pytest.fixture
def committed(sandbox):
    """A repository with the transcript of one example in its last commit."""
    claims(sandbox, "print(1 + 1)")
    git(sandbox, "init")
    git(sandbox, "add", "mkdocs.yml", "examples")
    identity = ("-c", "user.name=t", "-c", "user.email=t@t")
    git(sandbox, *identity, "commit", "--quiet", "--message", "first")
    return sandbox


def git(sandbox, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=sandbox.project.root, check=True, capture_output=True)


def claims(sandbox, code: str, machine=None, name: str = "a/one") -> None:
    """The cell `claim` of an example with this code, run."""
    sandbox.example(name, f"# %% other\nprint(abs(1))\n# %% claim\n{code}\n")
    (outcome,) = run(sandbox.project, [name], machine or sandbox.cpu)
    assert outcome.ok


def moved(sandbox, *names: str) -> dict[str, list[str]] | None:
    return moved_since_commit(sandbox.project, names or ["a/one"], "cpu")


def test_a_claim_that_moved_stays_named_until_it_is_committed(committed) -> None:
    claims(committed, "print(1 + 2)")
    for _ in ("ran", "known"):
        assert moved(committed) == {"a/one": ["claim"]}
        claims(committed, "print(1 + 2)")
    git(committed, "add", "examples")
    assert moved(committed) == {"a/one": ["claim"]}, "what is staged is not committed"
    claims(committed, "print(1 + 1)")
    assert moved(committed) == {}


def test_code_that_moved_is_no_claim(committed) -> None:
    claims(committed, "print(2 * 1)", replace(committed.cpu, device="another"))
    assert moved(committed) == {}


def test_plots_are_compared_by_the_commit_s_word(committed) -> None:
    claims(committed, "import matplotlib.pyplot as plt\nplt.plot([1])")
    assert moved(committed) == {"a/one": ["claim"]}


def test_a_new_example_has_no_claim_that_moved(committed) -> None:
    claims(committed, "print(1 + 2)", name="a/two")
    assert moved(committed, "a/one", "a/two") == {}


def test_without_a_repository_or_git_it_is_not_known(sandbox, committed, monkeypatch) -> None:
    monkeypatch.setenv("GIT_DIR", str(sandbox.project.root / "nowhere"))
    assert moved(sandbox) is None
    monkeypatch.setenv("PATH", "")
    assert moved(sandbox) is None
