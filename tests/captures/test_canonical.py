import hashlib

import pytest

from captures.canonical import canonical


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
