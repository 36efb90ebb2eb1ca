"""The save-or-recompute widget, driven in a real browser and held to the table beside it."""

import re

import pytest

pytestmark = pytest.mark.browser

PAGE = "lessons/backward-grid/"
UNITS = {"tensor": "tensor core", "fp32": "fp32 ALU", "special": "exponential unit"}


class Widget:
    """What a reader sees and moves. Playwright's selectors reach into an open shadow root."""

    def __init__(self, page):
        self.page = page
        self.host = page.locator("save-or-recompute")
        self.host.scroll_into_view_if_needed()

    def find(self, selector: str):
        return self.host.locator(selector)

    def choose(self, machine: str, unit: str) -> None:
        self.find(f"#machines input[value={machine}]").check()
        self.find(f"#units input[value={unit}]").check()

    def slide(self, name: str, position: int) -> None:
        self.find(f"#{name}").evaluate(
            "(input, value) => { input.value = value;"
            " input.dispatchEvent(new Event('input', { bubbles: true })); }",
            position,
        )

    def operations(self, unit: str) -> float:
        name = "calls" if unit == "special" else "flops"
        said = self.find(f"#{name}").get_attribute("aria-valuetext") or ""
        return float(said.split()[0])

    @property
    def status(self) -> str:
        return self.find("[role=status]").inner_text()

    @property
    def verdict(self) -> str:
        return self.status.split(".")[0]

    @property
    def crossover(self) -> float:
        return float(re.search(r"crossover is at ([\d.]+) ", self.status)[1])


@pytest.fixture
def widget(visit):
    return Widget(visit(PAGE).page)


@pytest.fixture
def table(widget) -> dict[tuple[str, str], float]:
    """The static table that a reader without JavaScript has: crossover by machine and unit."""
    rows = widget.page.locator("#table-crossover ~ .md-typeset__scrollwrap table").first
    if not rows.count():
        rows = widget.page.locator("#table-crossover ~ table").first
    heads = rows.locator("th").all_inner_texts()
    crossovers = {}
    for row in rows.locator("tbody tr").all():
        cells = row.locator("td").all_inner_texts()
        machine = re.match(r"[A-Z]+\d+", cells[0])[0]
        machine = next(name for name in ("H100", "H200", "A100", "L4") if machine.startswith(name))
        for unit, head in UNITS.items():
            crossovers[machine, unit] = float(cells[heads.index(head)])
    return crossovers


def test_crossovers_and_verdicts_are_the_tables(widget, table):
    assert len(table) == 12
    for (machine, unit), expected in table.items():
        widget.choose(machine, unit)
        assert widget.crossover == expected, (machine, unit)
        name = "calls" if unit == "special" else "flops"
        seen = set()
        for position in range(0, int(widget.find(f"#{name}").get_attribute("max")) + 1, 4):
            widget.slide(name, position)
            operations = widget.operations(unit)
            if abs(operations - expected) > 0.06 * expected:  # the table is rounded
                cheaper = "Recompute" if operations < expected else "Save"
                assert widget.verdict == cheaper, (machine, unit, operations)
                seen.add(cheaper)
        assert seen == {"Recompute", "Save"}


def test_size_cancels_and_bytes_do_not(widget):
    widget.choose("H100", "fp32")
    before = widget.status
    times = widget.find(".time").all_inner_texts()
    widget.slide("size", 20)
    assert widget.status == before
    assert widget.find(".time").all_inner_texts() != times
    widget.slide("bytes", 5)
    assert widget.crossover == 160


def test_the_longer_bar_is_the_dearer_choice(widget):
    widget.choose("H100", "fp32")

    def lengths():
        return [
            widget.find(f"[data-bar={name}] .fill").bounding_box()["width"]
            for name in ("save", "recompute")
        ]

    save, recompute = lengths()
    assert widget.verdict == "Recompute" and recompute < save
    widget.slide("flops", 48)
    save, recompute = lengths()
    assert widget.verdict == "Save" and save < recompute


def test_own_numbers(widget):
    widget.find("#machines input[value=own]").check()
    widget.find("#bandwidth").fill("1")
    widget.find("#rate").fill("2")
    assert widget.crossover == 8
    widget.find("#rate").fill("0")
    assert widget.status == "Bandwidth and rate must be numbers above zero."
    widget.find("#rate").fill("2")
    assert widget.crossover == 8


def test_the_measured_points_are_those_of_the_run(widget):
    run = '.run-code[data-run="backward_grid/recompute_sweep#points"]'
    printed = widget.page.locator(f"{run}, [data-run='backward_grid/recompute_sweep#points']")
    assert printed.count() >= 1
    output = widget.page.locator(".run-output", has_text="recompute ps").first.inner_text()
    for unit in ("fp32", "special"):
        widget.choose("H200", unit)
        rows = [line for line in output.split("\n") if line.startswith(unit)]
        assert len(rows) > 5
        assert widget.find("circle.dot-save").count() == len(rows)
        assert widget.find("circle.dot-recompute").count() == len(rows)
        assert "measured on the H200" in widget.find(".note").inner_text()
    widget.choose("A100", "fp32")
    assert widget.find("circle.dot-save").count() == 0


def test_keys_move_every_control(widget):
    widget.find("#machines input[value=H100]").focus()
    widget.page.keyboard.press("ArrowRight")
    assert widget.find("#machines input[value=H200]").is_checked()
    for name in ("flops", "bytes", "size"):
        slider = widget.find(f"#{name}")
        slider.focus()
        before = slider.get_attribute("aria-valuetext")
        widget.page.keyboard.press("ArrowLeft")
        assert slider.get_attribute("aria-valuetext") != before


def test_sliders_have_names_and_words(widget):
    for slider in widget.find("input[type=range]").all():
        name = slider.get_attribute("id")
        assert widget.find(f"label[for={name}]").inner_text()
        assert slider.get_attribute("aria-valuetext")
    assert widget.find("[role=status]").count() == 1


def test_a_finger_can_hit_the_sliders(visit):
    widget = Widget(visit(PAGE, width=390).page)
    for control in widget.find("input[type=range]:enabled, .choice label").all():
        assert control.bounding_box()["height"] >= 24
    box = widget.host.bounding_box()
    assert box["x"] >= 0 and box["x"] + box["width"] <= 390
    slider = widget.find("#flops")
    before = slider.get_attribute("aria-valuetext")
    place = slider.bounding_box()
    widget.page.mouse.click(place["x"] + 0.9 * place["width"], place["y"] + place["height"] / 2)
    assert slider.get_attribute("aria-valuetext") != before


def test_it_lives_through_instant_navigation(widget):
    widget.page.goto(widget.page.url.split("lessons/")[0])
    link = widget.page.locator("a[href*='lessons/backward-grid/']").first
    link.evaluate("link => link.click()")
    widget.page.wait_for_url("**/lessons/backward-grid/")
    widget.page.locator("save-or-recompute [role=status]").wait_for()
    assert Widget(widget.page).crossover == 80


def test_print_shows_the_table_instead(widget, table):
    widget.page.emulate_media(media="print")
    assert not widget.host.is_visible()
    assert widget.page.locator("#table-crossover").is_visible()


def test_without_javascript_the_table_stands_and_the_widget_says_so(browser, address):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(address + PAGE)
    assert "table below" in page.locator("save-or-recompute").inner_text()
    assert page.locator("td", has_text="585").first.is_visible()
    context.close()
