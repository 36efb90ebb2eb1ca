"""Every trap of the gallery is found and named, and its mended twin passes everything."""

import contextlib
import io
import runpy
from pathlib import Path

import pytest
import torch

from gradproof.traps import TRAPS

GALLERY = Path(__file__).parents[2] / "examples" / "trap_gallery"
# Programs run one after the other in the interpreter: there is no race to lose.
NEEDS_GPU = {"not-deterministic"}


@pytest.mark.parametrize("path", sorted(GALLERY.glob("*.py")), ids=lambda path: path.stem)
def test_the_trap_is_named_and_the_mended_twin_passes(path):
    name = path.stem.replace("_", "-")
    with contextlib.redirect_stdout(io.StringIO()):
        run = runpy.run_path(str(path))
    if name in NEEDS_GPU and not torch.cuda.is_available():
        assert run["report"].ok
    else:
        assert run["report"].traps[:1] == (name,), str(run["report"])
    assert run["mended"].ok, str(run["mended"])


def test_the_gallery_is_large_and_its_names_are_known():
    names = {path.stem.replace("_", "-") for path in GALLERY.glob("*.py")}
    assert len(names) >= 20
    assert names <= set(TRAPS)
