import hashlib

import pytest

from captures.fault import Faults
from captures.fingerprint import (
    canonical,
    fingerprint,
    first_party_modules,
    tree_fingerprint,
)
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
    return [path.name for path in first_party_modules(house.project, script)]


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


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("f'{x}' ''", "f'{x}'"),
        ("f'a' 'b' f'{x:}'", "f'ab{x}'"),
        ("f'a{{b'", "'a' f'{{b'"),
        ("u'a'", "'a'"),
        ("x = 'a' \\\n 'b'", "x = 'ab'"),
        ("x: int # type: ignore", "x: int"),
        ("f(a, b,)", "f(a,\n  b)"),
        ("1_000", "1000"),
    ],
)
def test_spellings_of_the_same_are_the_same(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1", "1.0"),
        ("True", "1"),
        ("'1'", "1"),
        ("b'a'", "'a'"),
        ("0.0", "-0.0"),
        ("f'{x}'", "f'{x!r}'"),
        ("f'{x:>3}'", "f'{x:>4}'"),
        ("f'{x}a'", "f'a{x}'"),
        ("'x'\n'y'", "'x'\n'z'"),
        ("def f(*, a=None): pass", "def f(*, a): pass"),
        ("def f(*, a, b=1): pass", "def f(*, a=1, b): pass"),
        ("{**a, 'b': c}", "{'b': c, **a}"),
        ("x[:1]", "x[1:]"),
        ("async def f(): pass", "def f(): pass"),
        ("return_ = 1", "return_ = -1"),
    ],
)
def test_what_means_something_else_is_something_else(one: str, other: str) -> None:
    assert canonical(one) != canonical(other)


def test_is_equal_under_every_supported_python() -> None:
    """The digest was taken under 3.11, 3.12 and 3.13, which parse these lines differently."""
    source = """
import a.b as c
from . import d
@d.e
class F(c.G, metaclass=d.M):
    x: int = 1_000
    def f(self, /, y, *args, z=None, **kwargs) -> "int":
        'Doc.'
        return f"{y!r:>{z}} {{}} {z=}" f"" f"{y:}" "tail" f"{'nested'}"
async def h():
    async with c as k, d: yield (n := [*k, *(i async for i in d if i)])
match c:
    case {"a": [1, *rest], **more} | F(x=1) as whole if rest: pass
    case _: lambda *, a, b=2: (yield)
try: x[1:2, ..., ::-1] @= -1j
except* ValueError as e: raise e from None
"""
    digest = hashlib.sha256(canonical(source).encode()).hexdigest()
    assert digest == "f37ef5dd7e19a4449943e570f051f123b91bd882b4b2eb2fa10da89802ae0a04"


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
