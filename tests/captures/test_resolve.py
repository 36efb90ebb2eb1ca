import pytest

from captures.fault import Faults
from captures.forms import parse
from captures.resolve import Resolver, check_pages

SCRIPT = """
# %% setup
from gk.gelu import gelu

# %% claim
print("sum:", 0.5)

# %% differs
print("type: FloatTensor")

# %% speed tags=["measured"]
print("gbps: 4101")

# %% silent
x = 1
"""

KERNEL = '''
import torch

# How many elements a program takes.
BLOCK = 1024


@decorated(
    "twice"
)
def gelu(x):
    """Twice."""
    return 2 * x


class GELU:
    @staticmethod
    def forward(x):
        return x
'''


@pytest.fixture
def house(sandbox):
    sandbox.write("src/gk/__init__.py", "")
    sandbox.write("src/gk/gelu.py", KERNEL)
    sandbox.example("a/one", SCRIPT)
    common = {"setup": "", "claim": "sum: 0.5\nstalls at 32.77, -6 of 1e-3", "silent": ""}
    sandbox.record("a/one", {**common, "differs": "type: FloatTensor", "speed": "gbps: 3"})
    sandbox.record(
        "a/one",
        {**common, "differs": "type: cuda.FloatTensor", "speed": "gbps: 4101"},
        machine="gpu",
    )
    return sandbox


def resolve(house, markdown: str):
    (form,), faults = parse(markdown, "docs/x.md")
    assert not faults
    return Resolver(house.project).resolve(form)


def refusal(house, markdown: str) -> str:
    with pytest.raises(Faults) as raised:
        resolve(house, markdown)
    (fault,) = raised.value.faults
    assert (fault.path, fault.line) == ("docs/x.md", 1)
    return fault.message


def machines(view) -> list[str]:
    return [transcript.machine for transcript in view.transcripts]


def test_agreeing_outputs_are_one_view(house) -> None:
    (view,) = resolve(house, "::: run a/one#claim").views
    assert machines(view) == ["gpu", "cpu"]
    assert view.output.text.startswith("sum: 0.5")
    assert not view.stale


def test_differing_outputs_are_a_view_each(house) -> None:
    gpu, cpu = resolve(house, "::: run a/one#differs").views
    assert (machines(gpu), gpu.output.text) == (["gpu"], "type: cuda.FloatTensor")
    assert (machines(cpu), cpu.output.text) == (["cpu"], "type: FloatTensor")


def test_measured_output_is_the_gpus_where_there_is_one(house) -> None:
    (view,) = resolve(house, "::: run a/one#speed").views
    assert (machines(view), view.output.text) == (["gpu"], "gbps: 4101")


def test_a_plot_has_words_and_only_a_plot(house) -> None:
    house.write("examples/a/one.cpu.silent.svg", "<svg></svg>\n")
    house.record("a/one", {"silent": ""}, figures={"silent": ["one.cpu.silent.svg"]})
    assert resolve(house, '::: run a/one#silent "A line."').words == "A line."
    with pytest.raises(Faults, match=r"^docs/x.md:1: say what the plot shows: ::: run a/one#sil"):
        resolve(house, "::: run a/one#silent")
    with pytest.raises(Faults, match=r"^docs/x.md:1: a/one#claim shows no plot, so its words"):
        resolve(house, '::: run a/one#claim "A line."')


def test_one_transcript_is_enough(house) -> None:
    (house.project.examples / "a/one.gpu.txt").unlink()
    (view,) = resolve(house, "::: run a/one#differs").views
    assert machines(view) == ["cpu"]
    assert resolve(house, "[](capture:a/one#speed:gbps)").text == "3"


def test_an_edited_kernel_makes_views_stale(house) -> None:
    resolve(house, "::: run a/one#claim")
    house.write("src/gk/gelu.py", KERNEL.replace("2 * x", "x + x"))
    (view,) = resolve(house, "::: run a/one#claim").views
    assert view.stale
    assert resolve(house, "[0.5](capture:a/one#claim)").stale


def test_sources_by_symbol(house) -> None:
    function = resolve(house, "::: source gk.gelu:gelu")
    assert function.code.startswith('@decorated(\n    "twice"\n)\ndef gelu(x):')
    assert function.code.endswith("return 2 * x")
    lines = KERNEL.lstrip("\n").split("\n")[function.first - 1 : function.last]
    assert "\n".join(lines) == function.code
    assert function.path == "src/gk/gelu.py"
    constant = resolve(house, "::: source gk.gelu:BLOCK")
    assert constant.code == "# How many elements a program takes.\nBLOCK = 1024"
    method = resolve(house, "::: source gk.gelu:GELU.forward")
    assert method.code == "@staticmethod\ndef forward(x):\n    return x"


def test_the_source_of_a_helper_beside_examples(house) -> None:
    house.write("examples/a/_timing.py", "def seconds(f):\n    return 1\n")
    function = resolve(house, "::: source a._timing:seconds")
    assert function.path == "examples/a/_timing.py"
    assert function.code == "def seconds(f):\n    return 1"


@pytest.mark.parametrize(
    ("markdown", "said"),
    [
        ("::: run a/on#claim", "no example a/on; did you mean a/one?"),
        ("::: run a/one#clam", "has no cell 'clam'; did you mean claim?"),
        (
            "::: source gk.gel:gelu",
            "no module gk.gel in src/ or examples/; did you mean gk.gelu or gk?",
        ),
        ("::: source gk.gelu:gleu", "gk.gelu defines no gleu; did you mean gelu?"),
        ("::: source gk.gelu:GELU.foward", "did you mean GELU.forward or GELU?"),
        ("[0.7](capture:a/one#claim)", "'0.7' does not stand in what a/one#claim printed"),
        ("[sum: 0.6](capture:a/one#claim)", "it printed 'sum: 0.5'"),
        (
            "[cuda.FloatTensor](capture:a/one#differs)",
            "on gpu only, and not on cpu; it printed 'type: FloatTensor'",
        ),
        ("[4101](capture:a/one#speed)", "pull it: [](capture:a/one#speed:key)"),
        ("[](capture:a/one#speed:gbs)", "no line 'gbs: …'; did you mean gbps?"),
        ("[](capture:a/one#differs:type)", "choose one with @gpu or @cpu"),
    ],
)
def test_refusals_name_what_is_near(house, markdown: str, said: str) -> None:
    assert said in refusal(house, markdown)


def test_quotes_and_values_of_one_machine(house) -> None:
    quote = resolve(house, "[cuda.FloatTensor](capture:a/one#differs@gpu)")
    assert [transcript.machine for transcript in quote.transcripts] == ["gpu"]
    assert resolve(house, "[](capture:a/one#differs:type@cpu)").text == "FloatTensor"
    assert resolve(house, "[](capture:a/one#speed:gbps)").text == "4101"
    assert resolve(house, "[](capture:a/one#speed:gbps@cpu)").text == "3"


def test_no_transcript_says_what_to_run(house) -> None:
    for machine in ("gpu", "cpu"):
        (house.project.examples / f"a/one.{machine}.txt").unlink()
    assert "run `captures run a/one`" in refusal(house, "::: run a/one#claim")


def test_every_fault_of_every_page_at_once(house) -> None:
    house.write("docs/lessons/b.md", "::: run a/one#clam\n\n[0.7](capture:a/one#claim)\n")
    house.write("docs/a.md", "---\nx: 1\n---\n\n```\nopen\n")
    house.example("a/two", "# %% setup\nfrom gk.gelu import nothing\nnothing()\n")
    assert [str(fault).split(": ")[0] for fault in check_pages(Resolver(house.project))] == [
        "docs/a.md:5",
        "docs/lessons/b.md:1",
        "docs/lessons/b.md:3",
        "examples/a/two.py:2",
    ]


def test_a_damaged_script_is_named_itself(house) -> None:
    house.write("docs/x.md", "::: run a/one#claim\n")
    house.example("a/one", SCRIPT + "\n# %% claim\ny = 1\n")
    (fault,) = check_pages(Resolver(house.project))
    assert str(fault).startswith("examples/a/one.py:")
    assert "already defined" in fault.message
