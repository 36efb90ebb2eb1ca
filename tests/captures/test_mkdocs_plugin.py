import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from captures.check import check
from captures.expand import expand
from captures.mkdocs_plugin import CapturesPlugin
from captures.outdated import READ
from captures.script import read_script
from captures.standalone import runnable, standalone

CONFIG = """
site_name: sandbox
site_url: https://site.org/b/
edit_uri: https://host/o/r/edit/main/docs/
theme:
  name: material
  font: false
  features: [content.action.edit]
validation:
  nav:
    omitted_files: warn
  links:
    not_found: warn
    anchors: warn
plugins:
  - search
  - captures
  - mkdocs-jupyter:
      execute: false
      allow_errors: false
      include_source: true
  - mkdocstrings:
      handlers:
        python:
          paths: [src]
markdown_extensions:
  - admonition
  - attr_list
  - captures
  - footnotes
  - tables
  - pymdownx.highlight
  - pymdownx.superfences
  - pymdownx.tabbed:
      alternate_style: true
"""

SCRIPT = """
# %% setup
from gk.gelu import gelu

x = 1

# %% claim
print("twice:", gelu(x))

# %% plot
print("plotted")
"""

PAGE = """
---
title: One
---

# One

::: run a/one#claim

It says [2](capture:a/one#claim).

- item

    ::: run a/one#plot "A line."
"""


@pytest.fixture
def house(sandbox):
    return furnish(sandbox)


@pytest.fixture(scope="module")
def built(shared_sandbox):
    """A site that builds as it is: the house, its files before the build, and the site."""
    house = furnish(shared_sandbox)
    before = house.state()
    return house, before, build(house)


def furnish(sandbox):
    sandbox.write("mkdocs.yml", CONFIG)
    sandbox.write(
        "docs/index.md", "# Home\n\n[One](lessons/one.md), [runs](runs.md)\n\n::: gk.gelu\n"
    )
    sandbox.write("src/gk/__init__.py", "")
    sandbox.write("src/gk/gelu.py", 'def gelu(x):\n    """Twice."""\n    return 2 * x\n')
    sandbox.example("a/one", SCRIPT)
    sandbox.write(
        "examples/a/one.cpu.plot.svg", '<svg width="72pt" height="36pt" stroke="#000000"></svg>\n'
    )
    record(sandbox)
    sandbox.write("docs/lessons/one.md", PAGE)
    return sandbox


def record(house) -> None:
    outputs = {"setup": "", "claim": "twice: 2", "plot": "plotted"}
    house.record("a/one", outputs, figures={"plot": ["one.cpu.plot.svg"]})


def mkdocs(house, *arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "mkdocs", *arguments],
        cwd=house.project.root,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        **options,
    )


def build(house) -> Path:
    done = mkdocs(house, "build", "--strict")
    assert done.returncode == 0, done.stderr
    return house.project.root / "site"


def refusals(house) -> list[str]:
    """What a failed build said, without its frame; never a traceback."""
    done = mkdocs(house, "build", "--strict")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return re.findall(r"(?:ERROR|WARNING) +-  (\S+?:.*)", done.stderr)


def test_what_is_published(built) -> None:
    house, before, site = built
    script = read_script(house.project, "a/one")
    files = {
        "scripts/a/one.py": script.text,
        "standalone/a/one.py": standalone(house.project, script),
        "runnable/a/one/claim.py": runnable(house.project, script, "claim"),
        "runnable/a/one/plot.py": runnable(house.project, script, "plot"),
        "llms-full.txt": expand(house.project),
    }
    for path, text in files.items():
        assert (site / path).read_text() == text, path
    assert not (site / "runnable/a/one/setup.py").exists()  # no page offers it
    plot = (site / "examples/a/one.cpu.plot.svg").read_text()
    assert plot == before["examples/a/one.cpu.plot.svg"].decode().replace("#000000", "currentColor")
    assert "currentColor" in plot
    assert "twice: 2" in (site / "lessons/one/index.html").read_text()
    assert "a processor" in (site / "runs/index.html").read_text()
    assert "def" in (site / "index.html").read_text()  # mkdocstrings still reads its own form
    for html in site.rglob("*.html"):
        assert "capture:" not in html.read_text(), html
    after = {path: text for path, text in house.state().items() if not path.startswith("site/")}
    assert after == before  # a build writes nothing but the site


def test_the_notebook_is_rendered_and_downloadable(built) -> None:
    _, _, site = built
    html = (site / "notebooks/one/index.html").read_text()
    assert "jp-OutputArea-output" in html and "twice: 2" in html
    assert "nbformat" not in html
    assert re.search(r'<img alt="A line\."[^>]* src="data:image/svg\+xml', html)
    assert '"nbformat": 4' in (site / "notebooks/one/one.ipynb").read_text()


def test_a_search_finds_the_lesson_and_not_its_notebook(built) -> None:
    _, _, site = built
    found = json.loads((site / "search/search_index.json").read_text())["docs"]
    pages = {entry["location"].partition("#")[0] for entry in found}
    assert "lessons/one/" in pages
    assert not any(page.startswith("notebooks/") for page in pages)


def test_a_search_finds_words_and_outputs_and_no_code(built) -> None:
    _, _, site = built
    found = (site / "search/search_index.json").read_text()
    assert "It says" in found and "twice: 2" in found
    assert "print(" not in found


def test_a_build_killed_while_it_kept_a_notebook_page_spoils_none(built) -> None:
    house, _, site = built
    (kept,) = (house.project.root / ".cache/mkdocs-jupyter").glob("*.json")
    whole = kept.read_bytes()
    kept.write_bytes(whole[: len(whole) // 2])
    build(house)
    assert kept.read_bytes() == whole
    assert "twice: 2" in (site / "notebooks/one/index.html").read_text()


def test_the_end_of_a_lesson_offers_its_files(built) -> None:
    _, _, site = built
    html = (site / "lessons/one/index.html").read_text()
    for href in ("../../scripts/a/one.py", "../../standalone/a/one.py", "../../notebooks/one/"):
        assert f'href="{href}"' in html
    assert 'class="run-script" href="../../runnable/a/one/claim.py"' in html
    assert 'href="https://host/o/r/blob/main/examples/a/one.py"' in html


def test_generated_pages_are_edited_where_they_come_from(built) -> None:
    _, _, site = built
    edited = {
        "runs/index.html": "src/captures/runs_page.py",
        "notebooks/one/index.html": "docs/lessons/one.md",
        "lessons/one/index.html": "docs/lessons/one.md",
    }
    for page, origin in edited.items():
        assert f'href="https://host/o/r/edit/main/{origin}"' in (site / page).read_text()


def test_every_fault_of_every_page_in_one_go(house) -> None:
    page = PAGE.lstrip("\n").replace("one#claim\n", "one#clam\n", 1).replace("[2]", "[3]")
    house.write("docs/lessons/one.md", page + "\n```python\nopen\n")
    house.write("docs/index.md", "# Home\n\n::: rum a/one#claim\n")
    said = refusals(house)
    assert [line.split(": ")[0] for line in said[:-1]] == [
        "docs/index.md:3",
        "docs/lessons/one.md:7",
        "docs/lessons/one.md:9",
        "docs/lessons/one.md:15",
    ]
    assert said[-1].startswith("captures: 4 faults")


@pytest.mark.parametrize("page", ["docs/index.md", "docs/lessons/one.md"])
def test_a_page_that_is_not_utf_8_is_a_fault(house, page) -> None:
    (house.project.root / page).write_bytes("# Überschrift\n".encode("latin-1"))
    assert any(said.startswith(f"{page}: is not UTF-8 (byte 2: ") for said in refusals(house))


def test_a_deleted_cell_fails_where_it_is_shown(house) -> None:
    house.example("a/one", SCRIPT.replace("# %% claim\n", ""))
    record(house)
    said = refusals(house)
    assert [line.split(": ")[0] for line in said if line.startswith("docs")] == [
        "docs/lessons/one.md:7",
        "docs/lessons/one.md:9",
    ]


def test_a_script_that_cannot_stand_alone_fails(house) -> None:
    house.example("a/one", SCRIPT.replace("x = 1", "import requests\n\nx = requests"))
    record(house)
    (fault, _) = refusals(house)
    assert fault.startswith("examples/a/one.py:4: imports requests")


def test_a_stale_cpu_run_fails_a_strict_build(house) -> None:
    house.write("src/gk/gelu.py", "def gelu(x):\n    return x + x\n")
    (fault,) = refusals(house)
    assert fault.startswith("examples/a/one.cpu.txt: is stale")
    assert mkdocs(house, "build").returncode == 0
    assert (
        "Stale: the code has changed"
        in (house.project.root / "site/lessons/one/index.html").read_text()
    )


def test_a_module_under_edit_is_a_fault(house) -> None:
    house.write("src/alone.py", "y = 1\n")
    house.example("a/one", SCRIPT.replace("x = 1", "from alone import y\n\nx = y"))
    record(house)
    house.write("src/alone.py", "y = (1\n")
    assert "src/alone.py:1: does not parse: '(' was never closed" in refusals(house)


def test_a_stale_gpu_run_is_a_badge(house) -> None:
    house.record("a/one", {"setup": "", "claim": "twice: 3", "plot": "plotted"}, machine="gpu")
    house.write("docs/lessons/one.md", PAGE.replace("[2](capture:a/one#claim)", "two"))
    house.write("src/gk/gelu.py", "def gelu(x):\n    return x + x\n")
    record(house)
    done = mkdocs(house, "build", "--strict")
    assert done.returncode == 0, done.stderr
    html = (house.project.root / "site/lessons/one/index.html").read_text()
    assert "Stale: the code has changed" in html
    (warning,) = check(house.project).warnings
    assert f"{warning}\n" in done.stderr
    assert f"run `captures run a/one --machine gpu` and {READ}" in warning


def test_a_stale_run_is_told_of_once_in_a_session(house, caplog) -> None:
    caplog.set_level("INFO")
    house.write("src/gk/gelu.py", "def gelu(x):\n    return x + x\n")
    plugin = CapturesPlugin()
    plugin.project, plugin.serving = house.project, True
    for _ in range(2):
        plugin._report_stale()
    assert caplog.text.count("examples/a/one.cpu.txt: is stale") == 1


def test_the_wrong_order_of_plugins_is_refused(house) -> None:
    config = CONFIG.replace("  - captures\n", "", 1).replace(
        "  - mkdocstrings", "  - captures\n  - mkdocstrings"
    )
    house.write("mkdocs.yml", config)
    done = mkdocs(house, "build")
    assert done.returncode == 1
    assert "list captures before mkdocs-jupyter" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_extension_alone_refuses_cleanly(house) -> None:
    house.write("mkdocs.yml", CONFIG.replace("  - captures\n", "", 1))
    house.write("docs/index.md", "# Home\n\n::: run a/one#clam\n")
    done = mkdocs(house, "build", "--strict")
    assert done.returncode == 1
    assert "docs/index.md:3: examples/a/one.py has no cell 'clam'" in done.stderr
    assert "Traceback" not in done.stderr


@contextmanager
def served(house) -> Iterator[tuple[str, subprocess.Popen, Path]]:
    """The address of the house's lesson, its server and the file of what that says."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = house.project.cache / "served.txt"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as said:
        server = subprocess.Popen(
            [sys.executable, "-m", "mkdocs", "serve", "-a", f"127.0.0.1:{port}"],
            cwd=house.project.root,
            env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(house.project.src)},
            stdout=subprocess.DEVNULL,
            stderr=said,
        )
    try:
        yield f"http://127.0.0.1:{port}/b/lessons/one/", server, log
    finally:
        server.terminate()
        server.wait(10)


def test_serve_runs_an_edited_example_again_and_shows_it(house) -> None:
    with served(house) as (url, server, _):
        shows(url, "twice: 2", server)
        house.example("a/one", SCRIPT.replace("x = 1", "x = 21"))
        shows(url, "twice: 42", server)
        assert "twice: 42" in (house.project.examples / "a/one.cpu.txt").read_text()


def test_a_port_that_is_taken_is_one_line_before_any_page_is_built(house) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        done = mkdocs(house, "serve", "-a", f"127.0.0.1:{port}")
    assert done.returncode == 1
    said = done.stdout + done.stderr
    assert f"captures: cannot serve on port {port} of 127.0.0.1" in said
    assert "make serve PORT=8001" in said
    assert "Traceback" not in said and "Building documentation to" not in said


def test_serve_tells_of_faults_and_of_no_consequences(house) -> None:
    page = PAGE.replace("#claim\n", "#clam\n", 1).replace('#plot "A line."', "#plot")
    quote = "[plotted](capture:a/one#plot)\n"
    house.write("docs/lessons/one.md", f"{page}\nIt took 3.5 ms; {quote}")
    house.write("docs/index.md", f"# Home\n\n[Runs](runs.md), {quote}")
    with served(house) as (url, server, log):
        shows(url, "has no cell", server)
        said = log.read_text()
        for fault in (
            "docs/lessons/one.md:7: examples/a/one.py has no cell 'clam'",
            "docs/lessons/one.md:13: say what the plot shows",
            "docs/lessons/one.md:15: '3.5' is typed by hand",
        ):
            assert f"ERROR   -  {fault}" in said
        assert "contains a link" not in said  # to what cannot be shown


def test_a_transcript_edited_by_hand_is_a_fault_without_consequences(house) -> None:
    house.write("docs/index.md", "# Home\n\n[Runs](runs.md)\n")
    transcript = house.project.examples / "a/one.cpu.txt"
    transcript.write_text(transcript.read_text().replace("[claim]", "[claim]\n    more: 1"))
    done = mkdocs(house, "build", "--strict")
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert "take that back with `git checkout examples/a/one.cpu.txt`" in said
    assert "contains a link" not in said


def shows(url: str, text: str, server: subprocess.Popen, seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    html = ""
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                html = response.read().decode()
        except OSError:
            html = ""
        if text in html:
            return
        time.sleep(0.5)
    raise AssertionError(f"{text!r} never came; the page said {html[-500:]!r}")
