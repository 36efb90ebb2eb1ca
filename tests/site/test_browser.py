"""Every page in a real browser: wide and narrow, light and dark."""

import functools
import os
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LESSONS = [f"lessons/{path.stem}/" for path in sorted((DOCS / "lessons").glob("*.md"))]
REFERENCE = [f"reference/{path.stem}/" for path in sorted((DOCS / "reference").glob("*.md"))]
OTHERS = ["", "404.html", "runs/", *REFERENCE]

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="session")
def browser():
    chromium = next(filter(None, map(shutil.which, CHROMIUM)), None)
    if chromium is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium here: .ci/run installs one")
        pytest.skip("needs a Chromium: apt-get install chromium, or the like")
    # Playwright gives every launch a fresh user-data-dir.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield browser
        browser.close()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="session")
def address(site):
    server = ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Quiet, directory=str(site.parent))
    )
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/{site.name}/"
    server.shutdown()


class Visit:
    """A page opened, with what went wrong while it loaded."""

    def __init__(self, browser: Browser, address: str, path: str, width: int, scheme: str):
        self.context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            permissions=["clipboard-read", "clipboard-write"],
            reduced_motion="reduce",
        )
        self.page: Page = self.context.new_page()
        self.errors: list[str] = []
        self.page.on(
            "console", lambda said: self.errors.append(said.text) if said.type == "error" else None
        )
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", lambda request: self.note_request(request.url, address))
        self.page.goto(address + path, wait_until="networkidle")

    def note_request(self, url: str, address: str) -> None:
        if not url.startswith((address, "data:", "blob:")):
            self.errors.append(f"request to {url}")


@pytest.fixture
def visit(browser, address):
    opened: list[Visit] = []

    def open_page(path: str, width: int = 1280, scheme: str = "light") -> Visit:
        opened.append(Visit(browser, address, path, width, scheme))
        return opened[-1]

    yield open_page
    for one in opened:
        one.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("path", [*LESSONS, *OTHERS])
def test_a_page_is_whole_quiet_and_accessible(visit, path, width, scheme):
    seen = visit(path, width, scheme)
    assert seen.errors == []
    assert seen.page.evaluate("document.body.dataset.mdColorScheme") == (
        "slate" if scheme == "dark" else "default"
    )
    seen.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    overflow = seen.page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert overflow <= 0, "the page scrolls sideways"
    assert violations(seen.page) == []
    if path in LESSONS:
        assert seen.page.locator(".run-code").count() > 0
        assert runs_without_output(seen.page) == []


def violations(page: Page) -> list:
    found = Axe().run(page).response["violations"]
    return [(rule["id"], [node["target"] for node in rule["nodes"][:3]]) for rule in found]


def runs_without_output(page: Page) -> list[str]:
    return page.evaluate(
        """() => [...document.querySelectorAll(".run-code")].filter((code) => {
            const shown = code.nextElementSibling;  // a label, or the tabs of two machines
            if (shown?.matches(".run-label")) {
                if (shown.innerText.startsWith("Ran, printing nothing")) return false;
                const output = shown.nextElementSibling;
                return !(output?.matches(".run-output") && output.innerText.trim())
                    && !output?.querySelector("img.run-figure");
            }
            const outputs = [...(shown?.querySelectorAll(".tabbed-block") ?? [])];
            return outputs.length < 2
                || !outputs.every((one) => one.querySelector(".run-output, img.run-figure"));
        }).map((code) => code.dataset.run)"""
    )


def test_a_reader_copies_code_and_never_output(visit):
    page = visit("lessons/graph-node/").page
    code = page.locator(".run-code").first
    code.scroll_into_view_if_needed()
    code.locator(".md-code__nav button, button.md-clipboard").first.click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.strip() == code.locator("code").inner_text().strip()
    assert page.locator(".run-output .md-code__nav, .run-output .md-clipboard").count() == 0


@pytest.mark.parametrize("width", [1280, 390])
def test_the_search_finds_a_lesson_by_keyboard(visit, width):
    seen = visit("", width)
    seen.page.keyboard.press("/")
    seen.page.keyboard.type("setup_context")
    result = seen.page.locator(".md-search-result__link").first
    result.wait_for(timeout=10_000)
    assert violations(seen.page) == []
    assert seen.errors == []


def test_what_scrolls_sideways_on_a_phone_can_be_reached_by_keyboard(visit):
    page = visit("lessons/graph-node/", 390).page
    unreachable = page.evaluate(
        """(boxes) => [...document.querySelectorAll(boxes)]
            .filter((box) => box.scrollWidth > box.clientWidth && box.tabIndex < 0)
            .map((box) => box.outerHTML.slice(0, 80))""",
        "pre > code, .md-typeset__scrollwrap, div.arithmatex",
    )
    assert unreachable == []
