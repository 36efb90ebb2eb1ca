import pytest

from captures.fault import Faults
from captures.fingerprint import Sources, fingerprint, tree_fingerprint
from captures.script import read_script

SCRIPT = """
# %% setup
from kernels.gelu import gelu
# %% launch
print(gelu(1))
"""


@pytest.fixture
def house(sandbox):
    sandbox.write(
        "src/kernels/__init__.py",
        '''
        """Loads lazily."""
        from typing import TYPE_CHECKING

        if TYPE_CHECKING:
            from kernels.softmax import softmax

        def __getattr__(name):
            import importlib
            return getattr(importlib.import_module(f".{name}", __name__), name)
        ''',
    )
    sandbox.write("src/kernels/_launch.py", "BLOCK = 1\n")
    sandbox.write(
        "src/kernels/gelu.py",
        '''
        from . import _launch

        def gelu(x):
            """Erf."""
            return x * _launch.BLOCK
        ''',
    )
    sandbox.write("src/kernels/softmax.py", "def softmax(x):\n    return x\n")
    sandbox.example("a/one", SCRIPT)
    return sandbox


def taken(house) -> str:
    return fingerprint(house.project, read_script(house.project, "a/one"))


def modules(house) -> list[str]:
    script = read_script(house.project, "a/one")
    return [path.name for path in Sources(house.project).modules(script)]


def replace(path, old: str, new: str) -> None:
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))


def test_one_kernel_does_not_hang_on_another(house) -> None:
    assert modules(house) == ["__init__.py", "_launch.py", "gelu.py"]


@pytest.mark.parametrize(
    "statement",
    [
        "import kernels.softmax",
        "from kernels import softmax",
        "import kernels",
        "from kernels import anything",
        "def late():\n    from kernels.softmax import softmax",
        "import importlib\nimportlib.import_module('kernels.softmax')",
    ],
)
def test_whatever_can_be_loaded_counts(house, statement: str) -> None:
    house.example("a/one", f"# %% setup\n{statement}\n")
    assert "softmax.py" in modules(house)


def test_a_helper_beside_the_script_counts(house) -> None:
    house.write("examples/a/_helper.py", "from kernels.softmax import softmax\n")
    house.example("a/one", "# %% setup\nfrom _helper import softmax\n")
    assert modules(house) == ["_helper.py", "__init__.py", "softmax.py"]


def test_relative_imports_of_a_package_count(house) -> None:
    house.write(
        "src/kernels/sub/__init__.py", "from .inner import x\nfrom ..softmax import softmax\n"
    )
    house.write("src/kernels/sub/inner.py", "x = 1\n")
    house.example("a/one", "# %% setup\nfrom kernels.sub import x\n")
    assert modules(house) == ["__init__.py", "softmax.py", "__init__.py", "inner.py"]


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("src/kernels/_launch.py", "BLOCK = 1", "BLOCK = 2"),
        ("src/kernels/gelu.py", "x * _launch", "x + _launch"),
        ("examples/a/one.py", "gelu(1)", "gelu(2)"),
        ("examples/a/one.py", "# %% launch", "# %% lunch"),
        ("examples/a/one.py", "# %% launch", '# %% launch tags=["measured"]'),
    ],
)
def test_a_change_of_code_changes_it(house, file: str, old: str, new: str) -> None:
    before = taken(house)
    replace(house.project.root / file, old, new)
    assert taken(house) != before


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("src/kernels/gelu.py", "Erf.", "The error function."),
        ("src/kernels/gelu.py", '    """Erf."""\n', ""),
        ("src/kernels/gelu.py", "x * _launch.BLOCK", "(x  *\n        _launch.BLOCK)  # scaled"),
        ("src/kernels/softmax.py", "return x", "return 2 * x"),
        ("examples/a/one.py", "# %% launch", "\n\n# a comment\n# %% launch"),
        ("examples/a/one.py", "# %% setup", '"""Doc."""\n# time limit: 9 s\n# %% setup'),
    ],
)
def test_comments_docstrings_format_and_strangers_do_not(house, file, old, new) -> None:
    before = taken(house)
    replace(house.project.root / file, old, new)
    assert taken(house) == before


def test_a_data_file_counts(house) -> None:
    data = house.write("examples/a/table.csv", "1\n")
    house.example("a/one", "# data: table.csv\n" + SCRIPT.lstrip())
    before = taken(house)
    data.write_text("2\n")
    assert taken(house) != before


def test_a_module_that_does_not_parse_is_named_with_its_line(house) -> None:
    house.write("src/kernels/gelu.py", "x = 1\ndef (\n")
    with pytest.raises(Faults, match=r"^src/kernels/gelu\.py:2: does not parse: "):
        taken(house)
    with pytest.raises(Faults, match=r"^kernels/gelu\.py:2: does not parse: "):
        tree_fingerprint([house.project.src / "kernels"])


def test_of_a_tree_sees_code_and_names_but_no_comments(house) -> None:
    package = house.project.src / "kernels"
    before = tree_fingerprint([package])
    replace(package / "softmax.py", "return x", "return x  # as it is")
    assert tree_fingerprint([package]) == before
    (package / "softmax.py").rename(package / "softmin.py")
    assert tree_fingerprint([package]) != before
