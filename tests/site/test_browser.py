"""Every page in a real browser: wide and narrow, light and dark."""

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
LESSONS = [f"lessons/{path.stem}/" for path in sorted((DOCS / "lessons").glob("*.md"))]
REFERENCE = [f"reference/{path.stem}/" for path in sorted((DOCS / "reference").glob("*.md"))]
NOTEBOOK = "notebooks/graph-node/"  # one is made like another
OTHERS = ["", "404.html", "runs/", NOTEBOOK, *REFERENCE]


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
    keep_one_token_of_each_kind(page)
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return [(rule["id"], [node["target"] for node in rule["nodes"][:3]]) for rule in found]


def keep_one_token_of_each_kind(page: Page) -> None:
    """Thousands of coloured tokens are alike, and axe looks at what lies behind each."""
    page.evaluate(
        """() => {
            const seen = new Set();
            for (const pre of document.querySelectorAll("pre")) {
                const code = pre.querySelector(":scope > code") ?? pre;
                const kinds = [...code.querySelectorAll("*")].map((token) => token.className);
                if (kinds.every((kind) => seen.has(kind))) code.textContent = code.textContent;
                else kinds.forEach((kind) => seen.add(kind));
            }
        }"""
    )


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
    code = page.locator(".run-code:visible").first
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


def test_brackets_grow_with_what_they_hold(visit):
    """As they do with the maths font, and not with a text font in its place."""
    page = visit("lessons/graph-node/").page
    plain, tall = page.evaluate(
        """async () => {
            await document.fonts.load('16px "STIX Two Math"');
            const box = document.createElement("p");
            const inside = "<mfrac><mfrac><mi>x</mi><mn>2</mn></mfrac><mn>2</mn></mfrac>";
            box.innerHTML = `<math display="block"><mo>(</mo></math>
                <math display="block"><mrow><mo>(</mo>${inside}<mo>)</mo></mrow></math>`;
            document.querySelector("article").append(box);
            return [...box.querySelectorAll("math")].map(
                (one) => one.querySelector("mo").getBoundingClientRect().height);
        }"""
    )
    assert page.evaluate("[...document.fonts].map((font) => font.status)") == ["loaded"]
    assert tall > 1.8 * plain
