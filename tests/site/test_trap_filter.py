"""The filter by symptom of the trap gallery, and the gallery's completeness."""

import ast
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PAGE = "lessons/trap-gallery/"


@pytest.fixture
def page(visit):
    page = visit(PAGE).page
    page.locator("trap-filter [role=status]").wait_for()
    return page


def shown(page) -> list[str]:
    return page.locator("h3.trap:visible").evaluate_all("(traps) => traps.map(({ id }) => id)")


def traps_by_symptom(page) -> dict[str, list[str]]:
    """What the page's table says, read without the widget's help."""
    return page.locator("#symptom-table tbody").evaluate(
        """(rows) => Object.fromEntries([...rows.rows].map((row) => [
            row.cells[0].innerText, [...row.querySelectorAll("a")].map((a) => a.hash.slice(1))]))"""
    )


def test_every_symptom_shows_its_traps_and_no_other(page):
    traps = shown(page)
    table = traps_by_symptom(page)
    assert len(traps) >= 20 and set(traps) <= {trap for row in table.values() for trap in row}
    buttons = page.locator("trap-filter button")
    assert [button.inner_text() for button in buttons.all()] == list(table)
    for button in buttons.all():
        symptom = button.inner_text()
        button.click()
        fitting = [trap for trap in traps if trap in table[symptom]]
        assert fitting and shown(page) == fitting
        status = page.locator("trap-filter [role=status]").inner_text()
        assert status.startswith(f"{len(fitting)} of {len(traps)} traps: {symptom}")
        assert [
            b.inner_text() for b in buttons.all() if b.get_attribute("aria-pressed") == "true"
        ] == [symptom]
    button.click()
    assert shown(page) == traps


def test_what_stands_below_a_hidden_trap_is_hidden_too(page):
    page.locator("trap-filter button").first.click()
    hidden = page.locator("h3.trap:not(:visible)").first
    below = hidden.evaluate(
        """(trap) => {
            const below = [];
            for (let one = trap.nextElementSibling; !/^H[23]$/.test(one.tagName);
                one = one.nextElementSibling) below.push(one.checkVisibility());
            return below;
        }"""
    )
    assert below and not any(below)
    groups = page.locator("h2:visible").all_inner_texts()
    assert any(text.startswith("Who saw what") for text in groups)


def test_the_keyboard_is_enough(page):
    page.locator("trap-filter button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    second = page.locator("trap-filter button").nth(1)
    assert second.get_attribute("aria-pressed") == "true"
    page.keyboard.press("Enter")
    assert second.get_attribute("aria-pressed") == "false"


def test_a_link_to_a_hidden_trap_shows_it(page):
    page.locator("trap-filter button").first.click()
    hidden = page.locator("h3.trap:not(:visible)").first.get_attribute("id")
    page.evaluate("id => { location.hash = id; }", hidden)
    page.locator(f"h3#{hidden}").wait_for(state="visible")


def test_it_lives_through_instant_navigation(page):
    page.goto(page.url.split("lessons/")[0])
    page.locator(f"a[href*='{PAGE}']").first.evaluate("link => link.click()")
    page.wait_for_url(f"**/{PAGE}")
    page.locator("trap-filter button").first.click()
    assert 0 < len(shown(page)) < page.locator("h3.trap").count()


def test_without_javascript_every_trap_is_shown(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PAGE)
    assert page.locator("h3.trap:visible").count() == page.locator("h3.trap").count()
    assert "all traps are shown" in page.locator("trap-filter").inner_text()
    assert page.locator("#symptom-table tbody tr").count() == len(traps_by_symptom(page)) > 10
    context.close()


def test_every_trap_that_a_report_can_name_has_a_place(page):
    catalogue = ast.parse((ROOT / "src/gradproof/traps.py").read_text())
    names = [
        call.args[0].value
        for call in ast.walk(catalogue)
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Trap" and call.args
    ]
    assert len(names) > 40
    places = page.evaluate("[...document.querySelectorAll('[id]')].map(({ id }) => id)")
    assert set(names) <= set(places)
