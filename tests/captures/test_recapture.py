import importlib.util
import time

import captures.recapture
from captures.recapture import Recapture


def finish(recapture: Recapture) -> None:
    assert recapture._thread is not None
    recapture._thread.join(60)
    assert not recapture._thread.is_alive()


def without_torch(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)


def with_torch(monkeypatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())


def test_without_torch_the_pages_say_so(sandbox, monkeypatch) -> None:
    without_torch(monkeypatch)
    recapture = Recapture(sandbox.project)
    recapture.start({"a/one": "code"})
    assert recapture._thread is None
    assert "torch is not installed" in recapture.notes["a/one"]


def test_a_failed_run_is_told_and_not_tried_again(sandbox, monkeypatch) -> None:
    with_torch(monkeypatch)
    recapture = Recapture(sandbox.project)
    recapture.start({"a/nowhere": "code"})
    assert "being run again" in recapture.notes["a/nowhere"]
    finish(recapture)
    assert "running it ended with: " in recapture.notes["a/nowhere"]
    signal = recapture.signals / "finished"
    assert "a/nowhere" in signal.read_text()
    first = recapture._thread
    recapture.start({"a/nowhere": "code"})
    assert recapture._thread is first
    recapture.start({"a/nowhere": "other code"})
    assert recapture._thread is not first
    finish(recapture)


def test_the_note_names_where_it_failed(sandbox, monkeypatch) -> None:
    with_torch(monkeypatch)
    sandbox.example("a/one", "# %% claim\nraise ValueError(1)\n")
    recapture = Recapture(sandbox.project)
    recapture.start({"a/one": "code"})
    finish(recapture)
    assert "ended with: examples/a/one.py:2: cell `claim` raised" in recapture.notes["a/one"]


def test_claims_that_changed_in_passing_are_told_of(sandbox, monkeypatch, caplog) -> None:
    with_torch(monkeypatch)
    caplog.set_level("INFO")
    told_of: dict[str, dict[str, list[str]]] = {"cpu": {"a/one": ["claim"]}, "gpu": {}}
    monkeypatch.setattr(
        captures.recapture, "moved_since_commit", lambda project, names, machine: told_of[machine]
    )
    recapture = Recapture(sandbox.project)
    recapture.start({"a/one": "code"})
    finish(recapture)
    assert caplog.text.count("Claims of 1 example differ from the committed ones") == 1


def test_one_run_at_a_time(sandbox, monkeypatch) -> None:
    with_torch(monkeypatch)
    recapture = Recapture(sandbox.project)
    monkeypatch.setattr(recapture, "_run", lambda names: time.sleep(0.3))
    recapture.start({"a/one": "code"})
    first = recapture._thread
    recapture.start({"a/two": "code"})
    assert recapture._thread is first
    finish(recapture)
    recapture.start({"a/two": "code"})
    assert recapture._thread is not first
    finish(recapture)
