"""A child process: its lines, its end, its output."""

import textwrap
import time
from pathlib import Path

import pytest

from gradproof.process import MOST_LINES, DiedError, Printed, Process, TooLongError

BEGINNING = """
    import faulthandler, json, os, signal, socket, subprocess, sys, time

    fd = int(sys.argv[1])
    channel = socket.socket(fileno=fd).makefile("rw")
    faulthandler.enable(fd)
    faulthandler.register(signal.SIGUSR1, fd)

    def answer(**message):
        print(json.dumps(message), file=channel, flush=True)

    def nap():
        time.sleep(1000)

"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts a process that runs the source given; without torch, it is there at once."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    started = []

    def process(source, printed=None):
        text = textwrap.dedent(BEGINNING) + textwrap.dedent(source)
        (tmp_path / "at_work.py").write_text(text)
        started.append(Process("at_work", printed=printed or Printed()))
        return started[-1]

    yield process
    for each in started:
        each.close()


def alive(pid):
    """A zombie that nobody has waited for is dead."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_it_answers(start):
    process = start("for line in channel: answer(said=line)")
    for line in ("a", "b"):
        process.send(line)
        assert process.receive(20) == {"said": f"{line}\n"}


def test_what_it_says_last_is_heard(start):
    process = start("answer(n=1); answer(n=2)")
    assert process.receive(20) == {"n": 1}
    assert process.receive(20) == {"n": 2}
    with pytest.raises(DiedError, match="exited with status 0"):
        process.receive(20)


def test_patience_ends_and_the_place_is_told(start):
    process = start("answer(ready=True)\nnap()")
    process.receive(20)
    with pytest.raises(TooLongError, match=r"^no answer within 0\.2 s$") as raised:
        process.receive(0.2)
    assert raised.value.place == "at_work.py:13"


@pytest.mark.parametrize(
    ("source", "words", "place"),
    [
        ("os.abort()", "the process died of SIGABRT", "at_work.py:15"),
        ("os._exit(0)", "the process exited with status 0", ""),
        ("sys.exit(3)", "the process exited with status 3", ""),
        (
            "os.kill(os.getpid(), signal.SIGKILL)",
            "the process died of SIGKILL (as when memory runs out)",
            "",
        ),
        # A child of its own holds the socket open: the end is noticed all the same.
        ("if os.fork(): os._exit(4)\nnap()", "the process exited with status 4", ""),
    ],
)
def test_a_death_is_noticed(start, source, words, place):
    with pytest.raises(DiedError) as raised:
        start(source).receive(20)
    assert (str(raised.value), raised.value.place) == (words, place)


def test_what_it_started_ends_with_it(start):
    process = start("answer(pid=subprocess.Popen(['sleep', '1000']).pid)\nnap()")
    pid = process.receive(20)["pid"]
    assert alive(pid)
    process.close()
    deadline = time.monotonic() + 10
    while alive(pid) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid)


def test_nothing_is_to_be_had_from_stdin(start):
    assert start("answer(read=sys.stdin.read())").receive(20) == {"read": ""}


def test_output_never_blocks_it_and_is_kept_apart(start):
    printed = Printed()
    source = "for _ in range(50000): print('hello')\nos.write(2, b'bye')\nanswer(done=True)"
    process = start(source, printed)
    assert process.receive(20) == {"done": True}
    process.close()
    assert printed.take() == "  hello  (50000 times)\n  bye"
    assert printed.take() == ""


def test_output_is_kept_within_bounds():
    printed = Printed()
    printed.feed("".join(f"{n}\n" for n in range(MOST_LINES + 7)).encode())
    assert printed.take().splitlines()[-2:] == [f"  {MOST_LINES - 1}", "  … and 7 more lines"]
    for _ in range(100):
        printed.feed(b"x" * 65536)
    assert len(printed.take()) < 1000


def open_descriptors():
    return len(list(Path("/dev/fd").iterdir()))


def test_no_descriptor_is_left(start):
    before = open_descriptors()
    process = start("answer(ready=True)")
    process.receive(20)
    process.close()
    assert open_descriptors() == before
