"""Every trap of the gallery is found and named, and its mended twin passes everything.

The runs are the captured ones, which `captures run` makes and repeats; a transcript that is not of
the code in the tree proves nothing, and fails. A few are run again here, in this process.
"""

import contextlib
import io
import re
import runpy
from pathlib import Path

import pytest

from captures.fingerprint import fingerprint
from captures.project import Project
from captures.script import read_script
from captures.transcript import read_transcript
from gradproof.traps import TRAPS

PROJECT = Project(Path(__file__).parents[2])
GALLERY = sorted(PROJECT.examples.glob("trap_gallery/*.py"))
# Programs run one after the other in the interpreter: there is no race to lose.
NEEDS_GPU = {"not-deterministic"}
# What a race may do first there: programs that store over each other also differ from run to run.
ALSO_ON_GPU = {"contributions-lost": "not-deterministic"}


def trap_of(path):
    return path.stem.replace("_", "-")


def captured(path, machine):
    """What the proof and the mended cell printed, if the transcript is of this code."""
    name = f"trap_gallery/{path.stem}"
    transcript = read_transcript(PROJECT, name, machine)
    if transcript is None:
        return None
    if transcript.fingerprint != fingerprint(PROJECT, read_script(PROJECT, name)):
        # A GPU is not at hand everywhere: its transcript may lag, and `captures check` says so.
        assert machine == "gpu", f"{name}: the transcript is stale; run captures run {name}"
        return None
    return transcript.output("proof").text, transcript.output("mended").text


def named(report):
    """The trap that a printed report puts first."""
    openings = re.findall(r"^([a-z0-9-]+): ", report, re.MULTILINE)
    return next((name for name in openings if name in TRAPS), None)


@pytest.mark.parametrize("machine", ["cpu", "gpu"])
@pytest.mark.parametrize("path", GALLERY, ids=trap_of)
def test_the_trap_is_named_and_the_mended_twin_passes(path, machine):
    outputs = captured(path, machine)
    if outputs is None:
        assert machine == "gpu", f"{path.name} has no CPU transcript"
        pytest.skip("no fresh GPU transcript")
    proof, mended = outputs
    trap = trap_of(path)
    right = {None if machine == "cpu" and trap in NEEDS_GPU else trap}
    right |= {ALSO_ON_GPU.get(trap, trap)} if machine == "gpu" else set()
    assert named(proof) in right, proof
    assert re.search(r"all \d+ probes hold", mended), mended


@pytest.mark.parametrize("stem", ["dy_strides_ignored", "missing_gradient", "shared_state"])
def test_run_again_it_says_the_same(stem):
    with contextlib.redirect_stdout(io.StringIO()):
        run = runpy.run_path(str(PROJECT.examples / "trap_gallery" / f"{stem}.py"))
    assert run["report"].traps[0] == stem.replace("_", "-"), str(run["report"])
    assert run["mended"].ok, str(run["mended"])


def test_the_gallery_is_large_and_its_names_are_known():
    names = {trap_of(path) for path in GALLERY}
    assert len(names) >= 20
    assert names <= set(TRAPS)
    assert names >= NEEDS_GPU
