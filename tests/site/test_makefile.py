"""The set-up: what it installs, when it does not, and what it says when it cannot."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from captures.cli import LAST_WORDS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def project(tmp_path):
    """The Makefile in a project whose environment is whole, though nothing is installed in it."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        shutil.copy(ROOT / name, tmp_path)
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    for stamp in ("pages", "everything"):
        (tmp_path / ".venv" / stamp).touch()
    return tmp_path


def make(project: Path, *arguments: str) -> subprocess.CompletedProcess:
    # Without the MAKEFLAGS of a make that runs these tests, and whoever's PORT.
    env = {key: os.environ[key] for key in os.environ if not key.startswith(("MAKE", "PORT"))}
    return subprocess.run(
        ["make", *arguments], cwd=project, env=env, capture_output=True, text=True, timeout=60
    )


def planned(project: Path, *arguments: str) -> str:
    return make(project, "--dry-run", *arguments).stdout


@pytest.mark.parametrize("target", ["site", "test", "serve"])
def test_a_second_call_installs_nothing(project, target):
    assert "pip install" not in planned(project, target)


@pytest.mark.parametrize("changed", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_what_is_needed_installs_again(project, changed):
    os.utime(project / changed, (time.time() + 60,) * 2)
    assert "-e '.[kernels,site,test]'" in planned(project, "site")
    assert "-e '.[site]'" in planned(project, "serve")


def test_an_environment_whose_interpreter_is_gone_is_made_again(project):
    (project / ".venv/bin/python").unlink()
    (project / ".venv/bin/python").symlink_to(project / "gone")
    assert "pip install" in planned(project, "test")


def test_an_interrupted_install_starts_afresh(project):
    (project / ".venv/everything").unlink()
    (project / ".venv/unfinished").touch()
    (project / ".venv/half-copied").touch()
    # A stand-in that makes no environment, so that the run ends before pip.
    stand_in = project / "python"
    stand_in.write_text('#!/bin/sh\n[ "$1" = -c ]\n')
    stand_in.chmod(0o755)
    said = make(project, "site", f"PYTHON={stand_in}")
    assert said.returncode != 0
    assert "the last install was not finished" in said.stdout
    assert not (project / ".venv/half-copied").exists() and not (project / ".venv.old").exists()
    assert (project / ".venv/unfinished").exists()


def test_serve_needs_neither_torch_nor_the_tests(project):
    (project / ".venv/pages").unlink()
    (project / ".venv/everything").unlink()
    plan = planned(project, "serve")
    assert "-e '.[site]'" in plan
    assert "kernels" not in plan


def test_serve_takes_another_port(project):
    assert "--dev-addr 127.0.0.1:8000\n" in planned(project, "serve")
    assert "--dev-addr 127.0.0.1:8001\n" in planned(project, "serve", "PORT=8001")


def test_site_ends_with_what_ran_and_how_to_look_at_it(project):
    keeps = f"mkdir -p .cache/captures && echo '2 ran.' >.cache/captures/{LAST_WORDS}"
    stand_in(project, "captures", keeps)
    stand_in(project, "mkdocs", "mkdir .cache/site && echo built")
    *_, built, blank, ran, last = make(project, "site").stdout.splitlines()
    assert (built, blank, ran) == ("built", "", "2 ran.")
    address, command = last.removeprefix("site/ is built. To look at it on ").split("/: ")
    port = command.removeprefix("python3 -m http.server --directory site ")
    assert address == f"http://127.0.0.1:{port}"
    readme = (ROOT / "README.md").read_text()
    assert command in readme and f"<{address}>" in readme
    assert port not in planned(project, "serve"), "both can run at once"


def test_a_build_that_fails_leaves_the_former_site(project):
    stand_in(project, "captures", "true")
    stand_in(project, "mkdocs", "mkdir -p .cache/site && exit 1")
    (project / "site").mkdir()
    (project / "site/index.html").write_text("former")
    assert make(project, "site").returncode != 0
    assert (project / "site/index.html").read_text() == "former"


def stand_in(project, program, does):
    script = project / ".venv/bin" / program
    script.write_text(f"#!/bin/sh\n{does}\n")
    script.chmod(0o755)


@pytest.mark.parametrize("python", ["false", "no-such-python"])
def test_a_python_that_will_not_do_is_named(project, python):
    (project / ".venv/everything").unlink()
    said = make(project, "site", f"PYTHON={python}")
    assert said.returncode != 0
    assert f"Python 3.11 or newer is needed and '{python}' is not" in said.stderr
    assert "make PYTHON=" in said.stderr


def test_help_lists_every_target(project):
    listed = make(project).stdout
    for target in ("site", "test", "serve", "check", "capture", "test-gpu", "release", "soak"):
        assert f"make {target}" in listed
