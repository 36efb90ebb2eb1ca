import os

import pytest

from captures.fault import Faults
from captures.transcript import (
    PROVENANCE,
    Output,
    Transcript,
    read_transcript,
    transcript_path,
    write_transcript,
)

TRANSCRIPT = Transcript(
    "a/one",
    "gpu",
    {key: f"some {key}" for key in PROVENANCE},
    "sha256:" + "0" * 64,
    (
        Output("setup", False, ""),
        Output("launch", False, "[setup]\n\n    figure x.svg\n[end of transcript]"),
        Output("speed", True, "gbps: 4101", ("one.gpu.speed.svg",)),
    ),
)


@pytest.fixture
def path(sandbox):
    sandbox.example("a/one", "# %% x\n")
    write_transcript(sandbox.project, TRANSCRIPT, {"one.gpu.speed.svg": b"<svg/>\n"})
    return transcript_path(sandbox.project, "a/one", "gpu")


def fault_of(sandbox) -> str:
    with pytest.raises(Faults) as caught:
        read_transcript(sandbox.project, "a/one", "gpu")
    (fault,) = caught.value.faults
    assert "captures run a/one --machine gpu --force" in fault.message
    return str(fault)


def test_what_is_written_is_read(sandbox, path) -> None:
    assert read_transcript(sandbox.project, "a/one", "gpu") == TRANSCRIPT
    assert read_transcript(sandbox.project, "a/one", "cpu") is None


def test_reads_like_the_run_it_records(sandbox, path) -> None:
    lines = path.read_text().split("\n")
    assert lines[:3] == [
        "example      a/one",
        "machine      gpu",
        "device       some device",
    ]
    assert lines[13:18] == ["[setup]", "", "[launch]", "    [setup]", ""]
    assert "[speed] measured" in lines


def test_line_ends_and_trailing_spaces_do_not_count(sandbox, path) -> None:
    path.write_bytes(path.read_bytes().replace(b"\n", b"  \r\n"))
    assert read_transcript(sandbox.project, "a/one", "gpu") == TRANSCRIPT


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("gbps: 4101", "gbps: 4102"),
        ("some device", "NVIDIA B200"),
        ("sha256:" + "0" * 64, "sha256:" + "1" * 64),
        ("[speed] measured", "[speed]"),
        ("[launch]", "[lunch]"),
        ("content      sha256:", "content      sha256:0"),
    ],
)
def test_a_hand_edit_is_refused_at_the_line_of_the_hash(sandbox, path, old, new) -> None:
    path.write_text(path.read_text().replace(old, new))
    assert fault_of(sandbox).startswith("examples/a/one.gpu.txt:12: was edited by hand")


def test_a_transcript_cut_anywhere_is_refused(sandbox, path) -> None:
    lines = path.read_text().rstrip("\n").split("\n")
    for kept in range(len(lines)):
        path.write_text("\n".join(lines[:kept]))
        assert "examples/a/one.gpu.txt:" in fault_of(sandbox)


def test_a_lost_or_changed_plot_is_refused(sandbox, path) -> None:
    plot = path.with_name("one.gpu.speed.svg")
    plot.write_bytes(b"<svg/>\r\n")
    assert read_transcript(sandbox.project, "a/one", "gpu") == TRANSCRIPT
    plot.write_bytes(b"<svg>drawn</svg>\n")
    assert "the plot one.gpu.speed.svg was changed" in fault_of(sandbox)
    plot.unlink()
    assert "the plot one.gpu.speed.svg is missing" in fault_of(sandbox)


def test_a_transcript_under_another_name_is_refused(sandbox, path) -> None:
    sandbox.example("a/two", "# %% x\n")
    path.rename(path.with_name("two.gpu.txt"))
    with pytest.raises(Faults, match="is of example a/one, but its name says a/two"):
        read_transcript(sandbox.project, "a/two", "gpu")


def test_a_failed_write_leaves_the_former_file(sandbox, path) -> None:
    before = sandbox.state()
    with pytest.raises(KeyError):
        write_transcript(sandbox.project, Transcript("a/one", "gpu", {}, "", ()))
    assert sandbox.state() == before


def test_a_full_disk_leaves_transcript_and_plots(sandbox, path, monkeypatch) -> None:
    before = sandbox.state()

    def refuse(handle: int, mode: str) -> None:
        os.close(handle)
        raise OSError(28, "No space left on device")

    for room in range(2):
        opened = iter([os.fdopen] * room)
        with monkeypatch.context() as patched:
            patched.setattr(os, "fdopen", lambda *how, left=opened: next(left, refuse)(*how))
            with pytest.raises(OSError, match="No space"):
                write_transcript(
                    sandbox.project, TRANSCRIPT, {"one.gpu.speed.svg": b"<svg>2</svg>"}
                )
        assert sandbox.state() == before


def test_a_transcript_that_cannot_be_read_is_a_fault(sandbox, path) -> None:
    path.unlink()
    path.mkdir()
    with pytest.raises(Faults, match=r"^examples/a/one\.gpu\.txt: cannot be read: Is a directory$"):
        read_transcript(sandbox.project, "a/one", "gpu")
