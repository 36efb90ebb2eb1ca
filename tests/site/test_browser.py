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


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
@pytest.mark.parametrize("path", [*LESSONS, *OTHERS])
def test_a_page_is_whole_quiet_and_accessible(visit, path, width, scheme):
    """As it is opened, and in the other width, which it is turned to."""
    seen = visit(path, width, scheme)
    assert seen.page.evaluate("document.body.dataset.mdColorScheme") == (
        "slate" if scheme == "dark" else "default"
    )
    seen.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    assert overflow(seen.page) <= 0, "the page scrolls sideways"
    assert violations(seen.page) == []
    if path in LESSONS:
        assert seen.page.locator(".run-code").count() > 0
        assert runs_without_output(seen.page) == []
    other = 390 if width == 1280 else 1280
    seen.page.set_viewport_size({"width": other, "height": 900})
    assert overflow(seen.page) <= 0, f"the page scrolls sideways when it is {other} wide"
    assert faint_text(seen.page) == []
    assert seen.errors == []


def overflow(page: Page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - innerWidth")


def violations(page: Page) -> list:
    faint = faint_text(page)
    page.evaluate(
        """() => {  // axe looks at each coloured token as if it were a paragraph
            for (const pre of document.querySelectorAll("pre")) {
                const code = pre.querySelector(":scope > code") ?? pre;
                if (!code.querySelector("[data-sample]")) code.textContent = code.textContent;
            }
        }"""
    )
    return faint + axe(page, {"rules": {"color-contrast": {"enabled": False}}})


def faint_text(page: Page) -> list:
    """Where the contrast is too low: axe takes long over each text, and thousands are alike."""
    page.evaluate(
        """() => {
            document.querySelectorAll("[data-sample]").forEach((one) => delete one.dataset.sample);
            const known = new Map([[null, ""]]);
            const behind = (box) => {  // all that is seen behind a text
                if (!known.has(box)) {
                    const look = getComputedStyle(box);
                    const own = [look.backgroundColor, look.backgroundImage, look.opacity,
                        look.filter, look.position].join();
                    const nothing = own === "rgba(0, 0, 0, 0),none,1,none,static";
                    known.set(box, behind(box.parentElement) + (nothing ? "" : `${own};`));
                }
                return known.get(box);
            };
            const alike = {};
            for (const box of document.body.querySelectorAll("*")) {
                const texts = [...box.childNodes].filter((one) => one.nodeType === Node.TEXT_NODE);
                if (!texts.some((one) => one.data.trim())) continue;
                if (!box.checkVisibility({ visibilityProperty: true })) continue;
                const { color, fontSize, fontWeight, textShadow } = getComputedStyle(box);
                const kind = [color, fontSize, fontWeight, textShadow, behind(box)].join("|");
                (alike[kind] ??= []).push([box.getElementsByTagName("*").length, box]);
            }
            for (const boxes of Object.values(alike))
                for (const [, box] of boxes.sort(([a], [b]) => a - b).slice(0, 3))
                    box.dataset.sample = "";
        }"""
    )
    return axe(page, {"runOnly": ["color-contrast"]}, {"include": [["[data-sample]"]]})


def axe(page: Page, options: dict, context: dict | None = None) -> list:
    options = {"resultTypes": ["violations"], **options}
    found = Axe().run(page, context=context, options=options).response["violations"]
    return [(rule["id"], [node["target"] for node in rule["nodes"][:3]]) for rule in found]


@pytest.mark.parametrize("where", ["article p", "pre code .n"])
def test_one_faint_text_among_thousands_is_found(visit, where):
    page = visit("lessons/graph-node/").page
    texts = page.locator(f"{where}:visible")
    texts.nth(texts.count() // 2).evaluate("(one) => { one.style.color = '#aaa'; }")
    assert [rule for rule, _ in violations(page)] == ["color-contrast"]


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
