"""The workflows hold what DESIGN's "Publishing" promises."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from captures.check import GPU_REPORT

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
BIN = Path(sys.executable).parent


def read(path: Path) -> dict:
    # BaseLoader keeps the key `on` a word; YAML 1.1 would read it as true.
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def steps() -> list[tuple[str, dict]]:
    return [
        (f"{path.name}:{name}", step)
        for path in WORKFLOWS
        for name, job in read(path)["jobs"].items()
        for step in job["steps"]
    ]


def reachable_from_pull_request() -> list[dict]:
    triggers = {"pull_request", "pull_request_target", "workflow_run", "issue_comment"}
    return [workflow for workflow in map(read, WORKFLOWS) if triggers & set(workflow["on"])]


@pytest.mark.parametrize(
    "tool",
    [
        ["actionlint"],
        ["zizmor", "--offline", "--no-progress"],
        ["check-jsonschema", "--builtin-schema", "vendor.github-workflows"],
    ],
    ids=lambda tool: tool[0],
)
def test_a_checking_tool_finds_nothing(tool):
    found = subprocess.run(
        [BIN / tool[0], *tool[1:], *WORKFLOWS], capture_output=True, text=True, timeout=120
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_every_action_is_pinned_by_hash_with_its_version_beside_it():
    lines = [
        line for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line
    ]
    assert lines
    for line in lines:
        assert re.search(r"uses: [\w./-]+@[0-9a-f]{40} # v\d", line), line


def test_every_run_step_is_a_make_target():
    runs = {step["run"] for _, step in steps() if "run" in step}
    assert runs
    for run in runs:
        assert re.fullmatch(r"make [a-z-]+", run), f"{run!r} is not one Make target"
        planned = subprocess.run(
            ["make", "--dry-run", *run.split()[1:]], cwd=ROOT, capture_output=True, text=True
        )
        assert planned.returncode == 0, planned.stderr
        assert planned.stdout.strip(), f"{run!r} does nothing"


def test_a_pull_request_reaches_no_gpu_no_secret_and_no_write_permission():
    workflows = reachable_from_pull_request()
    assert [workflow["name"] for workflow in workflows] == ["check"]
    for workflow in workflows:
        assert "pull_request_target" not in workflow["on"]
        assert workflow["permissions"] == {}
        assert "secrets." not in str(workflow)
        for job in workflow["jobs"].values():
            assert job["permissions"] == {"contents": "read"}
            assert job["runs-on"].startswith("ubuntu-")
            assert "environment" not in job


def test_the_gpu_job_is_guarded():
    gpu = [
        job for path in WORKFLOWS for job in read(path)["jobs"].values() if "GPU" in job["runs-on"]
    ]
    assert len(gpu) == 1
    assert gpu[0]["if"] == "vars.GPU_RUNNER != ''"
    assert gpu[0]["environment"] == "gpu"
    assert gpu[0]["permissions"] == {"contents": "read"}


def test_the_gpu_report_is_written_where_the_check_reads_it_and_uploaded_from_there():
    assert f"--report {GPU_REPORT}\n" in (ROOT / "Makefile").read_text()
    jobs = read(ROOT / ".github/workflows/publish.yml")["jobs"]
    uploads = [
        step["with"]["path"] for step in jobs["capture"]["steps"] if "path" in step.get("with", {})
    ]
    assert [path for path in uploads if GPU_REPORT in path.split()] == uploads


def test_publishing_goes_through_capture_and_a_release_check_before_it_deploys():
    jobs = read(ROOT / ".github/workflows/publish.yml")["jobs"]
    assert jobs["build"]["needs"] == "capture"
    assert "!failure()" in jobs["build"]["if"]
    assert "make release" in [step.get("run") for step in jobs["build"]["steps"]]
    assert jobs["deploy"]["needs"] == "build"
    assert "needs.build.result == 'success'" in jobs["deploy"]["if"]
    # A commit captured on request may be anybody's: it is never published.
    assert "inputs.commit == ''" in jobs["build"]["if"]


def test_every_job_names_its_permissions_and_its_time_limit():
    for path in WORKFLOWS:
        workflow = read(path)
        assert workflow["permissions"] == {}
        assert "concurrency" in workflow
        for name, job in workflow["jobs"].items():
            assert "permissions" in job, f"{path.name}:{name}"
            assert "timeout-minutes" in job, f"{path.name}:{name}"


@pytest.fixture
def clone(tmp_path):
    """A clone with one transcript, its remote beside it, and a ``gh`` that notes its calls."""
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"]

    def run(*command, cwd=tmp_path / "clone"):
        subprocess.run([*git, *command], cwd=cwd, check=True, capture_output=True)

    run("init", "--bare", str(tmp_path / "remote"), cwd=tmp_path)
    run("clone", str(tmp_path / "remote"), str(tmp_path / "clone"), cwd=tmp_path)
    clone = tmp_path / "clone"
    for folder in ("examples", "tests"):
        (clone / folder).mkdir()
        (clone / folder / "a.gpu.txt").write_text("before\n")
    run("add", ".")
    run("commit", "-m", "first")
    run("push", "origin", "HEAD:main")
    stub = tmp_path / "bin" / "gh"
    stub.parent.mkdir()
    stub.write_text(
        f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n[ "$1 $2" != "pr list" ] || echo 0\n'
    )
    stub.chmod(0o755)
    return clone


def propose(clone: Path) -> tuple[str, str]:
    """What the script says, and the calls that it made to ``gh``."""
    path = f"{clone.parent}/bin:{os.environ['PATH']}"
    script = ROOT / ".github/propose-transcripts.sh"
    done = subprocess.run(
        ["bash", script],
        cwd=clone,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert done.returncode == 0, done.stderr
    calls = clone.parent / "calls"
    return done.stdout, calls.read_text() if calls.exists() else ""


def test_a_changed_transcript_is_proposed_on_a_branch_of_its_own(clone):
    (clone / "examples/a.gpu.txt").write_text("after\n")
    _, calls = propose(clone)
    assert "pr create --head captures/refresh --base main" in calls
    pushed = subprocess.run(
        ["git", "show", "captures/refresh:examples/a.gpu.txt"],
        cwd=clone.parent / "remote",
        capture_output=True,
        text=True,
    )
    assert pushed.stdout == "after\n"


def test_unchanged_transcripts_are_not_proposed(clone):
    said, calls = propose(clone)
    assert "nothing to propose" in said
    assert calls == ""
