"""The link to a runnable script copies the script, by mouse and by keyboard, on every page."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

pytestmark = pytest.mark.browser

LESSON = "lessons/graph-node/"


def page_file(root: Path, path: str) -> Path:
    file = root / path.lstrip("/")
    return file / "index.html" if file.is_dir() else file


def published(page, link) -> str:
    return page.evaluate(
        "href => fetch(href).then((answer) => answer.text())", link.get_attribute("href")
    )


def copied(page, link) -> str:
    page.locator("#runnable-status", has_text="script copied").wait_for(
        state="attached", timeout=10_000
    )
    return page.evaluate("navigator.clipboard.readText()")


@pytest.mark.parametrize("key", ["Enter", "Space", ""])
def test_it_copies_the_published_script_and_says_so(visit, key):
    seen = visit(LESSON)
    link = seen.page.locator("a.run-script:visible").first
    before = link.inner_text()
    script = published(seen.page, link)
    assert script.startswith('# From "Backward in Triton"')
    if key:
        link.press(key)
    else:
        link.click()
    assert copied(seen.page, link) == script
    assert seen.page.url.endswith(LESSON)
    assert link.get_attribute("data-state") == "done"
    seen.page.wait_for_function("link => !link.dataset.state", arg=link.element_handle())
    assert link.inner_text() == before
    assert seen.errors == []


def test_it_still_does_after_instant_navigation(visit, site):
    """At the published address: Material looks pages up in the sitemap by host without port."""
    home = urlsplit((site / "sitemap.xml").read_text().split("<loc>")[1].split("</loc>")[0])
    seen = visit("")
    seen.page.route(
        f"{home.scheme}://{home.netloc}/**",
        lambda route: route.fulfill(path=page_file(site.parent, urlsplit(route.request.url).path)),
    )
    seen.page.goto(home.geturl(), wait_until="networkidle")
    seen.page.evaluate("window.kept = true")
    seen.page.locator(f"a[href*='{LESSON}']:visible").first.click()
    # The home page has a run of its own, which the lesson's would be taken for.
    seen.page.locator("h1", has_text="graph node").wait_for(timeout=10_000)
    link = seen.page.locator("a.run-script:visible").first
    link.wait_for(timeout=10_000)
    assert seen.page.evaluate("window.kept"), "the page was loaded anew, not navigated instantly"
    script = published(seen.page, link)
    link.click()
    assert copied(seen.page, link) == script


def test_without_javascript_it_is_a_link_to_the_script(site):
    html = (site / LESSON / "index.html").read_text()
    assert 'class="run-script" href="../../runnable/graph_node/' in html
