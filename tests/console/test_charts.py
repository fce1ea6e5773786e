"""Charts: where the shapes are, and what they say to people who do not see them."""

import re
from zoneinfo import ZoneInfo

import pytest

from petstore.console.numbers import Bars, change_in_percent, percent_of
from petstore.console.templates import templates


def drawn(macro: str, *arguments: object) -> str:
    page = templates(ZoneInfo("UTC"))._environment.from_string(  # noqa: SLF001
        "{% from 'charts.html' import bars, meter %}{{ " + macro + "(*arguments) }}"
    )
    return page.render(arguments=arguments)


def test_a_bar_is_in_its_place_and_as_high_as_its_share_of_a_round_maximum() -> None:
    chart = Bars("Requests", "requests", "Day", [("1 Nov", 0), ("2 Nov", 30), ("3 Nov", 60)])
    shapes = re.findall(
        r'good" x="(.+?)%" width="(.+?)%" y="(.+?)%" height="(.+?)%"', drawn("bars", chart)
    )
    assert shapes == [("37.5", "25.0", "70.0", "30.0"), ("70.83", "25.0", "40.0", "60.0")]


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 1), (1, 1), (3, 5), (9, 10), (10, 10), (11, 20), (2_147, 5_000)]
)
def test_the_maximum_of_the_axis_is_a_round_number(highest: int, top: int) -> None:
    assert Bars("Requests", "requests", "Day", [("1 Nov", highest)]).top == top


def test_a_chart_of_money_says_the_amounts_in_their_currency() -> None:
    values = [("1 Nov", 24_900), ("2 Nov", 100)]
    chart = Bars("Amount", "", "Day", values, "USD")
    assert chart.text == "Amount: $250.00 in all; the most, $249.00, on 1 Nov"
    assert chart.in_words(chart.top) == "$500.00"


@pytest.mark.parametrize(
    ("value", "other", "percent"),
    [(1, 2, "33%"), (1, 9_999, "<1%"), (9_999, 1, ">99%"), (5, 0, "100%"), (0, 5, "0%")],
)
def test_a_share_is_shown_as_0_or_100_percent_only_if_it_is_exact(
    value: int, other: int, percent: str
) -> None:
    assert percent_of(value, value + other) == percent


@pytest.mark.parametrize(
    ("now", "before", "told"),
    [(112, 100, "+12%"), (0, 100, "\N{MINUS SIGN}100%"), (100, 100, "+0%"), (5, 0, "")],
)
def test_a_change_is_told_in_percent(now: int, before: int, told: str) -> None:
    assert change_in_percent(now, before) == told


@pytest.mark.parametrize(
    ("used", "width", "tone", "told"),
    [
        (0, 0, "good", "0 of 60"),
        (47, 78.33, "good", "47 of 60"),
        (48, 80, "wait", "48 of 60 \N{EN DASH} nearly at the limit"),
        (60, 100, "bad", "60 of 60 \N{EN DASH} at the limit"),
        (90, 100, "bad", "90 of 60 \N{EN DASH} at the limit"),
    ],
)
def test_a_meter_warns_early(used: int, width: float, tone: str, told: str) -> None:
    html = drawn("meter", "This minute", used, 60)
    assert f"This minute: {told}" in " ".join(re.sub("<.*?>", "", html).split())
    ((drawn_tone, drawn_width),) = re.findall(r'tone (\w+)" width="([\d.]+)%"', html)
    assert (drawn_tone, float(drawn_width)) == (tone, width)


def test_a_meter_without_a_limit_draws_nothing() -> None:
    html = drawn("meter", "This minute", 90, None)
    assert "no limit" in html
    assert "<svg" not in html
