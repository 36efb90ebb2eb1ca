import re
import textwrap
from pathlib import Path
from types import SimpleNamespace

import markdown
import pytest
from markdown.treeprocessors import Treeprocessor

from captures.blocks import Site, svg_size

SCRIPT = """
# %% setup
import os

# %% claim
print("sum:", 0.5)

# %% differs
print("type: FloatTensor")

# %% plot
print("plotted")
"""

EXTENSIONS = [
    "captures",
    "admonition",
    "attr_list",
    "footnotes",
    "md_in_html",
    "tables",
    "pymdownx.details",
    "pymdownx.highlight",
    "pymdownx.superfences",
    "pymdownx.tabbed",
]


@pytest.fixture
def house(sandbox):
    sandbox.example("a/one", SCRIPT)
    sandbox.write("src/gk/gelu.py", "class GELU:\n    def forward(x):\n        return x\n")
    svg = '<svg xmlns="http://www.w3.org/2000/svg" width="72pt" height="36pt"></svg>\n'
    for machine, kind in (("cpu", "FloatTensor"), ("gpu", "cuda.FloatTensor")):
        sandbox.write(f"examples/a/one.{machine}.plot.svg", svg)
        sandbox.record(
            "a/one",
            {"setup": "", "claim": "sum: 0.5 <b>", "differs": f"type: {kind}", "plot": "plotted"},
            machine=machine,
            figures={"plot": [f"one.{machine}.plot.svg"]},
        )
    return sandbox


def page(house, text: str, site: Site | None = None, front: str = "") -> str:
    """The HTML of a page, rendered the way MkDocs hands pages to Python-Markdown."""
    text = textwrap.dedent(text)
    path = house.write("docs/lessons/x.md", front + text)
    site = site or Site(project=house.project)
    md = markdown.Markdown(
        extensions=EXTENSIONS,
        extension_configs={
            "captures": {"site": site},
            "pymdownx.tabbed": {"alternate_style": True},
        },
    )
    relpath = Treeprocessor(md)
    relpath.file = SimpleNamespace(abs_src_path=str(path))  # type: ignore[attr-defined]
    relpath.run = lambda root: None  # type: ignore[method-assign]
    md.treeprocessors.register(relpath, "relpath", 0)
    return md.convert(text)


def refusals(house, text: str, front: str = "") -> list[str]:
    with pytest.raises(Exception, match=r"docs/lessons/x\.md:\d+: ") as raised:
        page(house, text, front=front)
    return str(raised.value).split("\n")


def text_of(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html)


def test_a_run_block_is_code_and_labelled_output(house) -> None:
    html = page(house, "::: run a/one#claim\n")
    assert re.search(r'class="run-code[^"]*" data-run="a/one#claim"', html)
    assert re.search(r'class="run-output no-copy', html)
    assert "sum: 0.5 &lt;b&gt;" in html
    label = text_of(re.search(r'<p class="run-label">.*?</p>', html, re.DOTALL).group())
    assert "identical on a card, torch 2.13.0, triton 3.7.1, 2026-11-29 and a processor" in label
    assert 'id="run-a-one-claim"' in html
    assert "run-script" not in html  # nothing publishes the script here


def test_differing_outputs_are_tabs_with_their_versions(house) -> None:
    html = page(house, "::: run a/one#differs\n")
    assert re.findall(r"<label[^>]*>(.*?)</label>", html) == ["GPU", "CPU"]
    gpu, cpu = re.findall(r'<div class="tabbed-block">(.*?)</pre>', html, re.DOTALL)
    assert "a card" in gpu and "cuda.FloatTensor" in gpu
    assert "a processor" in cpu and "cuda" not in cpu


def test_plots_have_alt_text_and_size(house) -> None:
    html = page(house, '::: run a/one#plot "A [line] & `dots` at 2_a_3 $."\n')
    image = re.search(r"<img[^>]*>", html).group()
    assert 'alt="A [line] &amp; `dots` at 2_a_3 $."' in image
    assert 'src="../examples/a/one.gpu.plot.svg"' in image
    assert 'width="96"' in image and 'height="48"' in image


def test_a_site_that_publishes_has_links(house) -> None:
    site = Site(project=house.project, publishes=True, repository="https://host/blob/main/")
    html = page(house, "::: run a/one#claim\n\n::: source gk.gelu:GELU\n", site)
    assert 'class="run-script" href="../runnable/a/one/claim.py"' in html
    assert 'href="../runs.md#a-one"' in html
    assert 'href="https://host/blob/main/examples/a/one.py"' in html
    assert 'href="https://host/blob/main/src/gk/gelu.py#L1-L3"' in html


def test_stale_output_has_a_badge(house) -> None:
    house.example("a/one", SCRIPT.replace("0.5", "0.25"))
    html = page(house, "::: run a/one#claim\n")
    assert re.search(r'class="run-stale">Stale: the code has changed', html)
    site = Site(project=house.project, notes={"a/one": "running again"})
    assert "Stale: running again" in page(house, "::: run a/one#claim\n", site)


@pytest.mark.parametrize(
    "container",
    [
        '=== "Tab"\n\n    {}\n',
        "!!! note\n\n    {}\n",
        '??? tip "Folded"\n\n    {}\n',
        "- item\n\n    {}\n",
        '- item\n\n    === "Tab"\n\n        !!! note\n\n            {}\n',
    ],
)
@pytest.mark.parametrize(
    ("form", "code"),
    [
        ("::: run a/one#differs", 'print("type: FloatTensor")'),
        ("::: source gk.gelu:GELU", "class GELU:\n    def forward(x):\n        return x"),
    ],
)
def test_blocks_nest_and_keep_their_indentation(house, container, form, code) -> None:
    html = page(house, container.format(form))
    blocks = [text_of(block) for block in re.findall(r"<code>(.*?)</code>", html, re.DOTALL)]
    assert code in [block.replace("&quot;", '"').strip("\n") for block in blocks]
    assert ":::" not in html


def test_mkdocstrings_forms_pass_through(house) -> None:
    assert "::: gk.gelu" in page(house, "::: gk.gelu\n")


def test_links_of_every_make_lead_to_the_run(house) -> None:
    html = page(
        house,
        """\
        ::: run a/one#claim

        [0.5](capture:a/one#claim), [`sum: 0.5 <b>`][ref], **[0.5][]** [*0.5*](capture:a/one#claim)

        | a |
        |---|
        | [0.5](capture:a/one#claim) |

        [ref]: capture:a/one#claim
        [0.5]: capture:a/one#claim
        """,
    )
    links = re.findall(r'<a class="capture-quote" href="#run-a-one-claim"[^>]*>(.*?)</a>', html)
    assert links == [
        "0.5",
        "<code>sum: 0.5 &lt;b&gt;</code>",
        "0.5",
        "<em>0.5</em>",
        "0.5",
    ]
    assert "capture:" not in html


def test_values_are_put_in(house) -> None:
    html = page(house, "It is [](capture:a/one#claim:sum), of [](capture:a/one#differs:type@cpu).")
    assert re.sub(r"\s+", " ", text_of(html)) == "It is 0.5 &lt;b&gt;, of FloatTensor."
    assert "capture:" not in html


def test_a_quote_links_to_the_page_that_shows_the_run(house) -> None:
    house.write("docs/other.md", "::: run a/one#claim\n")
    html = page(house, "[0.5](capture:a/one#claim)\n")
    assert 'href="../other.md#run-a-one-claim"' in html


def test_a_quote_of_a_run_that_no_page_shows_links_to_its_record(house) -> None:
    site = Site(project=house.project, publishes=True)
    assert 'href="../runs.md#a-one"' in page(house, "[0.5](capture:a/one#claim)\n", site)
    assert '<span class="capture-quote"' in page(house, "[0.5](capture:a/one#claim)\n")


def test_the_second_block_of_a_cell_has_its_own_anchor(house) -> None:
    html = page(house, "::: run a/one#claim\n\n::: run a/one#claim\n")
    assert re.findall(r'id="(run-[^"]*)"', html) == ["run-a-one-claim", "run-a-one-claim-2"]


def test_three_faults_are_three_lines(house) -> None:
    text = """\
    # X

    ::: run a/one#clam

    [0.7](capture:a/one#claim) and [`0.8`][r]

    ```python
    open

    [r]: capture:a/one#claim
    """
    said = refusals(house, text, front="---\ntitle: X\n---\n\n")
    assert [line.split(": ")[0] for line in said] == [
        "docs/lessons/x.md:7",
        "docs/lessons/x.md:9",
        "docs/lessons/x.md:9",
        "docs/lessons/x.md:11",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "::: rum a/one#claim",
        "[0.5](capture:nonsense)",
        "![0.5](capture:a/one#claim)",
        '<a href="capture:a/one#claim">0.5</a>',
        "[![0.5](capture:a/one#claim)](other.md)",
        "Text[^1]\n\n[^1]: [0.7](capture:a/one#claim)",
        '<div markdown="1">\n\n[0.7](capture:a/one#claim)\n\n</div>',
        "<div>\n[0.5](capture:a/one#claim)\n</div>",
        "[see [0.5](capture:a/one#claim)](other.md)",
        "One <!-- [0.5](capture:a/one#claim) --> two.",
        "<!-- a note --> ::: run a/one#claim",
        "<!-- never closed\n\n::: run a/one#claim",
    ],
)
def test_nothing_slips_through(house, text: str) -> None:
    assert all(line.startswith("docs/lessons/x.md:") for line in refusals(house, text + "\n"))


def test_entities_in_a_quote_are_what_they_stand_for(house) -> None:
    for words in ("sum:&nbsp;0.5 &lt;b&gt;", "sum: 0.5 `<b>`"):
        html = page(house, f"[{words}](capture:a/one#claim)\n")
        assert 'class="capture-quote"' in html


def test_code_that_shows_a_capture_link_is_no_link(house) -> None:
    html = page(house, '`<a href="capture:x">` and `[0.5](capture:a/one#claim)`\n')
    assert text_of(html).count("capture:") == 2


def test_a_collecting_site_shows_the_fault_in_the_page(house) -> None:
    site = Site(project=house.project, faults=[])
    html = page(house, "::: run a/one#clam\n", site)
    assert "admonition failure" in html and "has no cell" in text_of(html)
    assert [fault.line for fault in site.faults or ()] == [1]


def test_pages_without_forms_need_no_project(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert markdown.markdown("Plain.", extensions=["captures"]) == "<p>Plain.</p>"


@pytest.mark.parametrize(
    ("root", "size"),
    [
        ('<svg width="72pt" height="36pt">', (96, 48)),
        ("<svg height='10' width='20px'>", (20, 10)),
        ('<svg stroke-width="3" viewBox="0 0 1 1">', (0, 0)),
        ("no svg", (0, 0)),
    ],
)
def test_svg_size(root: str, size: tuple[int, int]) -> None:
    assert svg_size(root) == size
