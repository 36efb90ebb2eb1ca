"""The site as a reader gets it: built strictly, served, and opened in a real browser.

The site is built once for all test processes; each has its own server and browser.
"""

import fcntl
import functools
import os
import shutil
import subprocess
import sys
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

ROOT = Path(__file__).parents[2]

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
def site(tmp_path_factory) -> Path:
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    # In a folder of the name that it has below the host, so that absolute addresses hold too.
    folder, finished = shared / "host/backward-in-triton", shared / "site-is-built"
    with (shared / "site-is-being-built").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not finished.exists():
            build(folder)
            finished.touch()
    return folder


def build(folder: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert built.returncode == 0, built.stdout + built.stderr


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
        # On a slow machine the page's scripts are still at work when its network has gone quiet.
        self.page.evaluate("new Promise((done) => requestIdleCallback(done, { timeout: 10_000 }))")

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
