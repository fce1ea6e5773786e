"""The plots show each work as a panel of bars, to scale."""

from xml.etree import ElementTree as ET

import pytest

from plots import Bar, bar_plot
from tables import Span

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*bars: Bar) -> ET.Element:
    return ET.fromstring(bar_plot("Requests a second", {"list": list(bars)}))  # noqa: S314 - ours


def bar(label: str, *values: float) -> Bar:
    return Bar(label, Span(*values), "#000")


def texts(plot: ET.Element) -> list[str | None]:
    return [element.text for element in plot.iter(f"{SVG}text")]


def test_bars_are_as_long_as_their_medians() -> None:
    plot = drawn(bar("One", 50, 40, 60), bar("Two", 200, 100, 300))
    _background, one, two = (float(rect.attrib["width"]) for rect in plot.iter(f"{SVG}rect"))
    assert one * 4 == pytest.approx(two, abs=0.5)


def test_title_panel_labels_and_medians_can_be_read() -> None:
    plot = drawn(bar("R & D <new>", 1234.5, 1000, 2000), bar("Two", 0.1234, 0.1, 0.2))
    assert texts(plot) == [
        "Requests a second",
        "list",
        "R & D <new>",
        *("1,234", "Two", "0.123"),
    ]


def test_everything_is_within_the_picture() -> None:
    plot = drawn(*(bar(str(number), 5, 4, 9) for number in range(12)))
    height = float(plot.attrib["viewBox"].split()[3])
    assert all(float(text.attrib["y"]) < height for text in plot.iter(f"{SVG}text"))
