"""Charts: where the shapes are, and what they say to people who do not see them."""

import pytest

from petstore.console.numbers import bars, change_in_percent, meter, percent_of


def test_the_height_of_a_bar_is_its_share_of_a_round_maximum() -> None:
    chart = bars(
        "days", "Requests", "requests", "Day", [("1 Nov", 0), ("2 Nov", 30), ("3 Nov", 60)]
    )
    assert chart.top == 100
    assert [(bar.y, bar.height) for bar in chart.bars] == [(100, 0), (70, 30), (40, 60)]


@pytest.mark.parametrize(
    ("highest", "top"), [(0, 1), (1, 1), (3, 5), (9, 10), (10, 10), (11, 20), (2_147, 5_000)]
)
def test_the_maximum_of_the_axis_is_a_round_number(highest: int, top: int) -> None:
    assert bars("days", "Requests", "requests", "Day", [("1 Nov", highest)]).top == top


def test_a_chart_of_money_says_the_amounts_in_their_currency() -> None:
    values = [("1 Nov", 24_900), ("2 Nov", 100)]
    chart = bars("amounts", "Amount", "", "Day", values, "USD")
    assert chart.text == "Amount: $250.00 in all; the most, $249.00, on 1 Nov"
    assert chart.in_words(chart.top) == "$500.00"
    assert [bar.height for bar in chart.bars] == [49.8, 0.2]


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
    ("used", "total", "width", "tone"),
    [
        (0, 60, 0, "good"),
        (47, 60, 78.33, "good"),
        (48, 60, 80, "wait"),
        (60, 60, 100, "bad"),
        (90, 60, 100, "bad"),
        (90, None, 0, "good"),
    ],
)
def test_a_meter_warns_early(used: int, total: int | None, width: float, tone: str) -> None:
    drawn = meter("This minute", used, total)
    assert (drawn.width, drawn.tone) == (width, tone)
