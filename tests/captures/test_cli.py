import re
import subprocess
import sys
import textwrap
from io import BytesIO, TextIOWrapper

import pytest

from captures import cli, machine


@pytest.fixture
def captures(sandbox, monkeypatch, capsys):
    """Calls the command inside the sandbox; gives status, stdout and stderr."""
    monkeypatch.chdir(sandbox.project.root)
    monkeypatch.setattr(machine, "probe", lambda project, kind: sandbox.cpu)

    def call(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["captures", *arguments])
        try:
            cli.main()
            status = 0
        except SystemExit as end:
            status = int(end.code or 0)
        said = capsys.readouterr()
        return status, said.out, said.err

    return call


def test_run_then_check(sandbox, captures) -> None:
    sandbox.example("a/one", "# %% claim\nprint(abs(1))\n")
    sandbox.write("docs/one.md", "# One\n\n::: run a/one#claim\n")
    status, out, _ = captures("run")
    assert status == 0
    assert "a/one: ran in" in out
    assert captures("run", "a/one")[1].count("known") == 2
    assert captures("run", "--check", "a")[0] == 0
    status, out, _ = captures("check")
    assert status == 0
    assert out.startswith("warning: examples/a/one.gpu.txt: is missing")
    assert out.endswith("\n0 errors, 1 warning\n")
    status, out, _ = captures("check", "--release")
    assert status == 1
    assert out.startswith("error: examples/a/one.gpu.txt: is missing")


def test_a_check_ends_with_errors_then_what_refreshes_them(sandbox, captures) -> None:
    for name in ("a/one", "a/two"):
        sandbox.example(name, "# %% claim\nprint(abs(1))\n")
    sandbox.write("docs/one.md", "# One\n\n::: run a/one#claim\n\n::: run a/two#claim\n")
    captures("run")
    for name in ("a/one", "a/two"):
        sandbox.example(name, "# %% claim\nprint(abs(2))\n")
    status, out, err = captures("check")
    assert (status, err) == (1, "")
    stale = "is stale, since its code changed; shown at docs/one.md"
    assert out.split("\n") == [
        "warning: 2 GPU transcripts are missing: a maintainer refreshes them with `make capture`; "
        "`captures check --release` lists them",
        f"error: examples/a/one.cpu.txt: {stale}:3",
        f"error: examples/a/two.cpu.txt: {stale}:5",
        "2 CPU transcripts are stale: `captures run --machine cpu -j 2` refreshes them; read what "
        "changed in `git diff` before you commit it: a changed claim is a finding",
        "2 errors, 1 warning",
        "",
    ]
    out = captures("check", "--release")[1]
    assert out.count("--machine gpu` and read what changed") == 2, "each is listed with its remedy"


def test_a_run_ends_with_the_claims_that_changed(sandbox, captures) -> None:
    sandbox.example("a/one", "# %% claim\nprint(abs(1))\n")
    captures("run")
    sandbox.example("a/one", "# %% claim\nprint(abs(2))\n")
    for options in (["--check"], []):
        out = captures("run", *options)[1]
        assert "Claims of 1 example differ from those recorded before:\n    a/one: claim\n" in out
    out = captures("run")[1]
    assert out.endswith("\nNo claim differs from those recorded before.\n")
    assert out.endswith((sandbox.project.cache / cli.LAST_WORDS).read_text())


def test_a_run_names_what_a_check_will_refuse(sandbox, captures) -> None:
    unguarded = "try:\n    1 / 0\nexcept ZeroDivisionError as error:\n    print(error)\n"
    sandbox.example("a/one", f"# %% claim\nprint('sum: 4')\n\n# %% fails\n{unguarded}")
    sandbox.example("a/two", "# %% claim\nprint(abs(1))\n")
    sandbox.write("docs/one.md", "# One\n\n::: run a/one#claim\n\n::: run a/one#fails\n")
    for _ in ("ran", "known"):
        status, out, _ = captures("run")
        assert status == 1
        said = re.findall("^captures check will refuse: (.*)", out, re.MULTILINE)
        assert [each.split(": ")[0] for each in said] == [
            "examples/a/one.py:2",
            "examples/a/one.py:5",
        ]
        errors = captures("check")[1]
        assert all(f"error: {each}\n" in errors for each in said)
    assert (sandbox.project.examples / "a/one.cpu.txt").is_file()
    assert captures("run", "a/two")[0] == 0, "what did not run is not judged"


def test_a_failed_example_gives_a_status(sandbox, captures) -> None:
    sandbox.example("a/one", "# %% claim\nraise ValueError(1)\n")
    status, out, _ = captures("run")
    assert status == 1
    assert "examples/a/one.py:2: cell `claim` raised ValueError: 1" in out


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["frobnicate"], "frobnicate"),
        (["run", "--machine", "tpu"], "tpu"),
        (["run", "-j", "0"], "0"),
        (["run", "-j", "many"], "many"),
        (["run", "--frob"], "--frob"),
        (["run", "--force", "--check"], "take one"),
        (["run", "a/oen"], "did you mean a/one"),
        (["check", "a/one"], "a/one"),
    ],
)
def test_bad_usage_is_one_line_and_status_2(sandbox, captures, arguments, complaint) -> None:
    sandbox.example("a/one", "# %% claim\nprint(abs(1))\n")
    status, out, err = captures(*arguments)
    assert (status, out) == (2, "")
    assert err.startswith("captures: ")
    assert err.count("\n") == 1
    assert complaint in err


def test_two_unknown_examples_are_two_lines(sandbox, captures) -> None:
    sandbox.example("a/one", "# %% claim\nprint(abs(1))\n")
    status, _, err = captures("run", "nope", "neither")
    assert status == 2
    assert err.count("there is no such example") == 2


def test_outside_a_project_one_line(tmp_path, captures, monkeypatch) -> None:
    outside = tmp_path.parent
    monkeypatch.chdir(outside)
    status, _, err = captures("run")
    assert status == 1
    assert "no mkdocs.yml here" in err


def test_a_loop_of_links_is_no_example(sandbox, captures) -> None:
    (sandbox.project.root / "loop").symlink_to("loop")
    status, _, err = captures("run", "loop", "\0")
    assert status == 2
    assert err.count("there is no such example") == err.count("\n") == 2


@pytest.mark.parametrize("module", ["click", "captures/check"])
def test_ctrl_c_during_an_import_is_one_line(sandbox, module) -> None:
    """Ctrl-C comes as the command imports ``module``, here one of that name before the real one."""
    stops = sandbox.write(f"early/{module}.py", "import os\nos.kill(os.getpid(), 2)\n")
    starts = f"""
    import sys
    import captures
    sys.path.insert(0, {str(sandbox.project.root / "early")!r})
    captures.__path__.insert(0, {str(stops.parent)!r})
    sys.argv = ["captures", "check"]
    from captures.cli import main
    main()
    """
    said = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(starts)],
        cwd=sandbox.project.root,
        capture_output=True,
        text=True,
    )
    assert said.stderr.strip() == "captures: interrupted"
    assert said.returncode == 130


def test_runs_as_a_module() -> None:
    said = subprocess.run([sys.executable, "-m", "captures", "--help"], capture_output=True)
    assert said.returncode == 0
    assert b"expand" in said.stdout


def test_what_the_system_refuses_is_one_line(sandbox, captures) -> None:
    (sandbox.project.docs / "loop.md").symlink_to("loop.md")
    status, _, err = captures("check")
    assert status == 1
    assert err.startswith("captures: [Errno 40]")
    assert err.count("\n") == 1


def test_a_reader_who_has_had_enough_ends_it_silently(sandbox) -> None:
    sandbox.write("docs/lessons/one.md", "long\n" * 50_000)
    command = f"'{sys.executable}' -m captures expand | head -1"
    shell = subprocess.run(
        command, shell=True, cwd=sandbox.project.root, capture_output=True, text=True
    )
    assert shell.stderr == ""


def test_a_terminal_that_cannot_show_a_letter_shows_its_number(
    sandbox, captures, monkeypatch
) -> None:
    sandbox.example("a/one", "# %% one\nraise ValueError('π')\n")
    screen = BytesIO()
    stdout = TextIOWrapper(screen, encoding="ascii", write_through=True)
    monkeypatch.setattr(sys, "stdout", stdout)
    assert captures("run")[0] == 1
    assert b"raised ValueError: \\u03c0" in screen.getvalue()
