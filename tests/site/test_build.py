"""The built files: nothing is loaded from elsewhere, and every link leads somewhere."""

import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).parents[2]
EDIT = "https://github.com/backward-in-triton/backward-in-triton/edit/main/"

# What a browser fetches by itself; a link that a reader follows is another matter.
FETCHED = {"img", "script", "iframe", "source", "video", "audio", "embed", "object"}
FETCHED_LINKS = {
    "stylesheet",
    "preload",
    "modulepreload",
    "icon",
    "preconnect",
    "prefetch",
    "manifest",
}


class Page(HTMLParser):
    """The addresses that one HTML page fetches, and its edit links."""

    def __init__(self, html: str):
        super().__init__()
        self.fetched: list[str] = []
        self.edit: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        named = dict(attrs)
        if tag in FETCHED:
            self.fetched += [named[key] for key in ("src", "srcset", "data") if named.get(key)]
        if tag == "link" and FETCHED_LINKS & set((named.get("rel") or "").split()):
            self.fetched.append(named["href"])
        if tag == "a" and named.get("rel") == "edit":
            self.edit.append(named["href"])


def pages(site: Path) -> dict[str, Page]:
    return {str(path.relative_to(site)): Page(path.read_text()) for path in site.rglob("*.html")}


def foreign(address: str) -> bool:
    return address.startswith(("http:", "https:", "//"))


def test_no_page_fetches_from_elsewhere(site):
    fetched = {name: [a for a in page.fetched if foreign(a)] for name, page in pages(site).items()}
    assert not {name: addresses for name, addresses in fetched.items() if addresses}


def test_no_stylesheet_fetches_from_elsewhere(site):
    sheets = [*site.rglob("*.css"), *site.rglob("*.html")]
    loads = re.compile(r"(?:url\(|@import)\s*[\"']?((?:https?:)?//[^\"')\s]+)")
    found = {str(path): loads.findall(path.read_text()) for path in sheets}
    assert not {path: addresses for path, addresses in found.items() if addresses}


def test_no_page_has_a_script_that_imports_from_elsewhere(site):
    imports = re.compile(r"""\bimport\s*\(?\s*["'`](?:https?:)?//""")
    assert not [str(path) for path in site.rglob("*.html") if imports.search(path.read_text())]


def test_our_scripts_name_no_other_host():
    for script in (ROOT / "docs/assets/js").glob("*.js"):
        text = script.read_text().replace("http://www.w3.org/2000/svg", "")  # a name, never fetched
        assert "://" not in text, script


def test_every_page_has_an_edit_link_to_a_file_that_exists(site):
    for name, page in pages(site).items():
        if name != "404.html":
            assert len(page.edit) == 1, name
            assert page.edit[0].startswith(EDIT), name
            assert (ROOT / page.edit[0].removeprefix(EDIT)).is_file(), page.edit[0]


def test_every_link_and_fragment_inside_the_site_leads_somewhere(site):
    checked = subprocess.run(
        [
            Path(sys.executable).parent / "lychee",
            *("--offline", "--include-fragments", "--no-progress", "--root-dir", site.parent),
            *("--index-files", "index.html", site),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_no_formula_is_left_as_tex(site):
    for path in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|style|svg)\b.*?</\1>", "", path.read_text(), flags=re.DOTALL)
        assert not re.search(r"\\\(|\\\[|\$\\|\\frac|\\Phi", text), path
