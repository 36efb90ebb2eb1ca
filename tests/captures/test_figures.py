import re

from captures.figures import STYLE, inked, themed


def luminance(colour: str) -> float:
    channels = (int(colour[i : i + 2], 16) / 255 for i in (0, 2, 4))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(weight * c for weight, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_lines_are_legible_on_light_and_dark() -> None:
    cycle = next(line for line in STYLE.split("\n") if "prop_cycle" in line)
    colours = re.findall(r'"([0-9a-f]{6})"', cycle)
    assert len(colours) == 6
    for colour in colours:
        assert contrast(colour, "ffffff") >= 3
        assert contrast(colour, "1e2129") >= 3


def test_ink_takes_the_colour_of_the_text_around() -> None:
    svg = b'<?xml?>\n<svg a="b">\n<path style="stroke: #010203"/></svg>'
    result = themed(svg).decode()
    assert "stroke: currentColor" in result
    assert result.index("<style>") < result.index("<path")
    assert "#010203" not in result


def test_black_is_ink_also_where_it_was_recorded() -> None:
    assert inked(b"stroke: #000000; fill: #010203") == b"stroke: currentColor; fill: currentColor"
    assert b"#000000" not in themed(b'<svg a="b">stroke: #000000</svg>')
