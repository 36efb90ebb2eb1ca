import pytest

from captures.fault import Faults
from captures.script import read_script, script_names


def faults_of(sandbox, text: str) -> list[str]:
    sandbox.example("a/one", text)
    with pytest.raises(Faults) as caught:
        read_script(sandbox.project, "a/one")
    return str(caught.value).split("\n")


def test_cells_have_names_tags_lines_and_code(sandbox) -> None:
    sandbox.write("examples/a/table.csv", "1\n")
    sandbox.example(
        "a/one",
        '''
        """What it shows."""
        # needs: gpu 80GB
        # time limit: 300 s
        # data: table.csv

        # %% set-up

        x = 1

        # %% speed tags=["measured"]
        print(x)
        ''',
    )
    script = read_script(sandbox.project, "a/one")
    assert (script.needs, script.memory_needed, script.time_limit) == ("gpu 80GB", 80, 300.0)
    assert [path.name for path in script.data] == ["table.csv"]
    setup, speed = script.cells
    assert (setup.name, setup.line, setup.first_line, setup.source) == ("set-up", 6, 8, "x = 1")
    assert (speed.name, speed.measured) == ("speed", True)
    assert script.cell("speed") is speed
    assert script.cell("sped") is None


def test_windows_line_ends_and_trailing_spaces_are_read(sandbox) -> None:
    sandbox.example("a/one", "").write_bytes(b"# %% one  \r\nprint(1)\r\n")
    assert read_script(sandbox.project, "a/one").cells[0].source == "print(1)"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("# %%", "is no cell title"),
        ("# %% [markdown]", "not kebab-case"),
        ("# %% Launch", "not kebab-case"),
        ("# %% two_words", "not kebab-case"),
        ("# %% two words", "is no cell title"),
        ("# %%one", "is no cell title"),
        ("#%% one", "with one space after"),
        ("    # %% one", "write it flush"),
        ("\t#%% one", "write it flush"),
        ("# %% one tags=[measured]", "malformed `tags=[measured]`"),
        ("# %% one tags=['measured']", "malformed"),
        ('# %% one tags="measured"', "malformed"),
        ('# %% one tags=["measured"', "malformed"),
        ("# %% one tags=", "malformed"),
        (f"# %% one tags={'[' * 100_000}", "malformed"),
        ('# %% one tags=["slow"]', "unknown tag `slow`; known: measured"),
        ('# %% one tag=["measured"]', "is no cell title"),
        ("# %% first", "already defined on line 1"),
    ],
)
def test_a_malformed_marker_is_refused_with_its_line(sandbox, line: str, complaint: str) -> None:
    found = faults_of(sandbox, f"# %% first\nx = 1\n{line}\ny = 2\n")
    assert any("examples/a/one.py:3: " in f and complaint in f for f in found)


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ("# needs: foo", "`# needs: foo` is unknown"),
        ("# needs: gpu 80", "is unknown"),
        ("# needs: gpu 0GB", "is unknown"),
        ("# need: gpu", "did you mean `# needs:`?"),
        ("# Needs: gpu", "did you mean `# needs:`?"),
        ("# time-limit: 5 s", "did you mean `# time limit:`?"),
        ("# time limit: 5 minutes", "is malformed; expected `300 s`"),
        ("# time limit: 0 s", "is malformed"),
        ("# data: missing.csv", "does not exist beside the script"),
        ("# data: loop", "does not exist beside the script"),
        (f"# data: {'a' * 5000}", "does not exist beside the script"),
        ("# needs: gpu\n# needs: torch", "a second `# needs:`"),
        ("import torch", "put `# %% setup` above it"),
    ],
)
def test_a_malformed_head_is_refused(sandbox, header: str, complaint: str) -> None:
    (sandbox.project.examples / "a").mkdir()
    (sandbox.project.examples / "a/loop").symlink_to("loop")
    (fault,) = faults_of(sandbox, f"{header}\n# %% one\nx = 1\n")
    assert complaint in fault
    assert fault.startswith(f"examples/a/one.py:{header.count(chr(10)) + 1}: ")


def test_every_fault_is_reported_at_once(sandbox) -> None:
    found = faults_of(
        sandbox,
        """
        # needs: foo
        # %% One
        x = (
        # %% empty
        # only a comment
        # %% late
        # needs: gpu
        y = 1
        """,
    )
    places = [fault.split(": ")[0].rpartition(":")[2] for fault in found]
    assert places == ["1", "2", "3", "4", "7"]


def test_a_comment_with_a_colon_is_no_header(sandbox) -> None:
    sandbox.example("a/one", "# Source: a paper\n# %% one\n# Note: fine\nx = 1\n")
    assert read_script(sandbox.project, "a/one").needs == ""


def test_no_cell_and_no_file_are_said_plainly(sandbox) -> None:
    assert "has no cell" in faults_of(sandbox, '"""Only this."""\n')[0]
    with pytest.raises(Faults, match=r"examples/a/two\.py: there is no such example"):
        read_script(sandbox.project, "a/two")


def test_names_are_of_lessons_without_helpers(sandbox) -> None:
    for name in ("b/two", "a/one", "a/_helper"):
        sandbox.example(name, "# %% x\n")
    assert script_names(sandbox.project) == ["a/one", "b/two"]


def test_a_byte_order_mark_is_read(sandbox) -> None:
    sandbox.example("a/one", "").write_bytes(b"\xef\xbb\xbf# %% one\nprint(1)\n")
    assert read_script(sandbox.project, "a/one").cells[0].line == 1


def test_code_that_python_cannot_parse_is_said_plainly(sandbox) -> None:
    for code in (f"x = {'1 + ' * 5000}1", "x = '\0'"):
        (fault,) = faults_of(sandbox, f"# %% one\n{code}\n")
        assert fault.startswith("examples/a/one.py:2: cell `one` does not parse by itself: ")


def test_a_script_that_cannot_be_read_is_said_plainly(sandbox) -> None:
    sandbox.example("a/latin", "").write_bytes(b"# %% one\nx = '\xe9'\n")
    sandbox.example("a/folder.py/x", "")
    sandbox.example("a/two words", "# %% one\nx = 1\n")
    complaints = {
        "a/latin": "is not UTF-8 (byte 14: invalid continuation byte); save it as UTF-8",
        "a/folder": "cannot be read: Is a directory",
        "a/two words": "rename it; a page can ask only for names of letters, digits, `_`, `-`, `.`",
    }
    for name, complaint in complaints.items():
        with pytest.raises(Faults) as caught:
            read_script(sandbox.project, name)
        assert str(caught.value) == f"examples/{name}.py: {complaint}"
