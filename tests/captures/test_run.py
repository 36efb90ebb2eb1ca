import os
import signal
import threading
import time
from dataclasses import replace

import pytest

from captures.run import Outcome, Watcher, run
from captures.script import script_names
from captures.transcript import read_transcript, transcript_path

GOOD = """
# %% setup
x = 2
# %% claim
print("double:", 2 * x)
# %% speed tags=["measured"]
import time
print(f"seconds: {time.perf_counter()}")
"""


def once(sandbox, *names: str, machine=None, **options) -> list[Outcome]:
    names = names or tuple(script_names(sandbox.project))
    return run(sandbox.project, names, machine or sandbox.cpu, **options)


def edit(path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


@pytest.fixture
def good(sandbox):
    sandbox.example("a/one", GOOD)
    (outcome,) = once(sandbox)
    assert (outcome.status, outcome.note) == ("ran", "transcript is new")
    return sandbox


def test_a_run_is_recorded(good) -> None:
    transcript = read_transcript(good.project, "a/one", "cpu")
    assert transcript.output("claim").text == "double: 4"
    assert transcript.provenance["device"] == "a processor"
    assert transcript.output("speed").measured


def test_what_ran_here_with_the_same_code_is_not_run_again(good) -> None:
    before = good.state()
    assert [o.status for o in once(good)] == ["known"]
    edit(good.project.examples / "a/one.py", "x = 2", "x = 2  # still")
    assert [o.status for o in once(good)] == ["known"]
    edit(good.project.examples / "a/one.py", "x = 2  # still", "x = 2")
    assert good.state() == before


def test_another_machine_or_version_runs_it_again(good) -> None:
    for change in ({"device": "another"}, {"torch": "2.14"}, {"triton": "4"}, {"python": "3.13.0"}):
        assert [o.status for o in once(good, machine=replace(good.cpu, **change))] == ["ran"]


def test_digits_that_were_measured_leave_the_transcript_alone(good) -> None:
    before = good.state()
    (outcome,) = once(good, machine=replace(good.cpu, device="another"))
    assert (outcome.status, outcome.note, outcome.difference) == ("ran", "claims hold", "")
    assert good.state() == before


def test_force_runs_and_rewrites(good) -> None:
    before = good.state()
    assert [o.note for o in once(good, force=True)] == ["rewritten, claims hold"]
    assert good.state() != before


def test_a_moved_claim_rewrites_and_reads_as_a_diff(good) -> None:
    edit(good.project.examples / "a/one.py", "x = 2", "x = 3")
    (outcome,) = once(good)
    assert outcome.note == "claims moved"
    assert outcome.difference.split("\n")[0] == "a/one#claim on cpu"
    assert "-double: 4\n+double: 6" in outcome.difference
    assert "speed" not in outcome.difference
    assert read_transcript(good.project, "a/one", "cpu").output("claim").text == "double: 6"


def test_moved_code_with_the_same_claims_is_rewritten(good) -> None:
    edit(good.project.examples / "a/one.py", "x = 2", "x = 1 + 1")
    (outcome,) = once(good)
    assert (outcome.note, outcome.difference) == ("code moved, claims hold", "")


def test_a_known_run_still_says_where_it_differs(good) -> None:
    path = transcript_path(good.project, "a/one", "cpu")
    former = path.read_bytes()
    edit(good.project.examples / "a/one.py", "x = 2", "x = 3")
    once(good)
    path.write_bytes(former)
    (outcome,) = once(good)
    assert outcome.status == "known"
    assert "+double: 6" in outcome.difference


def test_a_damaged_transcript_is_recorded_anew(good) -> None:
    path = transcript_path(good.project, "a/one", "cpu")
    before = path.read_bytes()
    edit(path, "double: 4", "double: 5")
    (outcome,) = once(good)
    assert outcome.status == "known"
    assert path.read_bytes() == before


def test_plots_that_are_gone_are_removed(sandbox) -> None:
    sandbox.example("a/one", "# %% p\nimport matplotlib.pyplot as plt\nplt.plot([1])\n")
    once(sandbox)
    assert (sandbox.project.examples / "a/one.cpu.p.svg").is_file()
    assert [o.status for o in once(sandbox)] == ["known"]
    sandbox.example("a/one", "# %% p\nprint(1 + 1)\n")
    once(sandbox)
    assert not (sandbox.project.examples / "a/one.cpu.p.svg").exists()


def test_check_twice_finds_nothing_and_touches_nothing(good) -> None:
    before = good.state()
    for _ in range(2):
        assert [(o.status, o.note) for o in once(good, check=True)] == [("ran", "claims hold")]
    assert good.state() == before


def test_check_fails_where_a_claim_differs_and_touches_nothing(good) -> None:
    edit(good.project.examples / "a/one.py", "x = 2", "x = 3")
    before = good.state()
    (outcome,) = once(good, check=True)
    assert not outcome.ok
    assert "+double: 6" in outcome.difference
    assert good.state() == before
    assert [o.status for o in once(good)] == ["ran"], "a check is not remembered"


def test_check_fails_without_a_transcript(sandbox) -> None:
    sandbox.example("a/one", GOOD)
    (outcome,) = once(sandbox, check=True)
    assert not outcome.ok
    assert "run `captures run a/one` first" in str(outcome.faults[0])


DEATHS = {
    "hangs": "time.sleep(60)",
    "crashes": "import ctypes; ctypes.string_at(0)",
    "exits": "import os; os._exit(3)",
    "is killed": "import os; os.kill(os.getpid(), 9)",
    "prints 100 MB": "for _ in range(100): print('x' * 999_999)",
    "warns": "import warnings; warnings.warn('so')",
    "no longer fails": """
try:
    1 / x
except ZeroDivisionError as error:
    print(f"ZeroDivisionError: {error}")
else:
    raise AssertionError("no error")
""",
}


@pytest.mark.parametrize("death", DEATHS)
def test_a_failure_spares_the_others_and_the_former_transcript(good, death: str) -> None:
    path = transcript_path(good.project, "a/one", "cpu")
    before = path.read_bytes()
    broken = f"# time limit: 2 s\n{GOOD.strip()}\nprint('so')\n{DEATHS[death]}\n"
    (good.project.examples / "a/one.py").write_text(broken)
    good.example("b/other", "# %% c\nprint(1 + 1)\n")
    failed, other = once(good)
    assert (failed.status, other.status) == ("failed", "ran")
    place, _, said = str(failed.faults[0]).partition(": ")
    assert place.startswith("examples/a/one.py:")
    assert said.startswith("cell `speed` ")
    assert "so" in failed.last_output or "xxx" in failed.last_output
    assert path.read_bytes() == before
    assert not once(good, "a/one")[0].ok, "a failure is not remembered as a run"


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_failure_is_reported(sandbox, jobs: int) -> None:
    sandbox.example("a/two", "# %% b\nraise SystemExit(3)\n")
    sandbox.example("b/four", "# %% Bad\n# %% Worse\n")
    sandbox.example("b/three", "# %% c\nprint(1 + 1)\n")
    outcomes = once(sandbox, jobs=jobs)
    assert [o.status for o in outcomes] == ["failed", "failed", "ran"]
    assert [len(o.faults) for o in outcomes] == [1, 4, 0]


class InterruptOnce(Watcher):
    """Presses Ctrl-C ``times`` times, a while after the hanging example began."""

    def __init__(self, times: int):
        self.times = times

    def started(self, example: str) -> None:
        if example == "a/hang":
            threading.Thread(target=self._press, daemon=True).start()

    def _press(self) -> None:
        time.sleep(0.6)
        for _ in range(self.times):
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)


@pytest.mark.parametrize(("times", "other"), [(1, "ran"), (2, "not run")])
def test_ctrl_c_names_what_ran_and_spares_the_rest(good, times: int, other: str) -> None:
    good.example("a/hang", "# %% one\nimport time\nprint('so far')\ntime.sleep(60)\n")
    good.example("b/late", "# %% one\nprint(1 + 1)\n")
    before = good.state()
    former = signal.getsignal(signal.SIGINT)
    outcomes = once(good, "a/hang", "b/late", watcher=InterruptOnce(times))
    assert [o.status for o in outcomes] == ["failed", other]
    assert outcomes[0].faults[0].line == 4
    assert outcomes[0].last_output == "so far"
    assert not any(o.ok for o in outcomes if o.status == "not run")
    assert before.items() <= good.state().items()
    assert signal.getsignal(signal.SIGINT) is former


def test_what_this_machine_cannot_run_is_skipped_and_named(sandbox) -> None:
    sandbox.example("a/any", "# needs: gpu\n# %% x\nprint(1 + 1)\n")
    sandbox.example("a/big", "# needs: gpu 80GB\n# %% x\nprint(1 + 1)\n")
    sandbox.example("a/plain", "# needs: torch\n# %% x\nprint(1 + 1)\n")
    cpu = once(sandbox)
    assert [o.status for o in cpu] == ["skipped", "skipped", "ran"]
    assert [o.note for o in cpu[:2]] == ["needs gpu", "needs gpu 80GB"]
    assert all(o.ok for o in cpu)
    gpu = replace(sandbox.cpu, kind="gpu", device="a card", memory=24)
    small = once(sandbox, machine=gpu)
    assert [o.status for o in small] == ["ran", "skipped", "ran"]
    assert small[1].note == "needs gpu 80GB, this one has 24 GB"
    assert once(sandbox, "a/big", machine=replace(gpu, memory=85))[0].status == "ran"
    assert read_transcript(sandbox.project, "a/any", "gpu").machine == "gpu"


def test_what_measures_runs_alone(sandbox) -> None:
    for name in ("a/first", "a/last"):
        sandbox.example(name, "# %% x\nimport time\ntime.sleep(0.3)\n")
    sandbox.example("a/mid", '# %% x tags=["measured"]\nimport time\ntime.sleep(0.1)\n')
    running: set[str] = set()
    companions: dict[str, set[str]] = {}

    class Listener(Watcher):
        def started(self, example: str) -> None:
            running.add(example)
            companions[example] = set(running)

        def finished(self, outcome: Outcome) -> None:
            running.discard(outcome.example)

    outcomes = once(sandbox, jobs=3, watcher=Listener())
    assert [o.example for o in outcomes] == ["a/first", "a/last", "a/mid"]
    assert companions["a/mid"] == {"a/mid"}
    assert max(map(len, companions.values())) == 2


def test_several_at_once_are_all_told_of(sandbox) -> None:
    for number in range(4):
        sandbox.example(f"a/e{number}", "# %% x\nprint(1 + 1)\n")
    heard: list[str] = []

    class Listener(Watcher):
        def started(self, example: str) -> None:
            heard.append(f"start {example}")

        def finished(self, outcome: Outcome) -> None:
            heard.append(f"end {outcome.example}")

    outcomes = once(sandbox, jobs=2, watcher=Listener())
    assert [o.example for o in outcomes] == [f"a/e{n}" for n in range(4)]
    assert sorted(heard) == sorted(f"{w} a/e{n}" for w in ("start", "end") for n in range(4))


def test_what_cannot_be_written_fails_that_example_only(good) -> None:
    good.example("b/two", GOOD)
    good.write(".cache/captures/cpu-a-processor-2.13.0-3.7.1-3.11.0/examples/b", "in the way")
    failed = once(good, "b/two", "a/one")[0]
    assert (failed.status, failed.note) == ("failed", "could not be recorded")
    assert str(failed.faults[0]).startswith("examples/b/two.py: could not be recorded: ")
