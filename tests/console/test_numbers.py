"""Amounts and counts as people type and read them, and charts also for who does not see them."""

import re
from zoneinfo import ZoneInfo

import pytest

from petstore.console.numbers import (
    Bars,
    change_in_percent,
    money_in_words,
    plain_amount,
    typed_amount,
)
from petstore.console.templates import templates
from petstore.errors import InvalidBody
from support.cases import case

TYPED: dict[str, dict[str, int | None]] = {
    "USD": {
        **dict.fromkeys(("", " "), None),
        **dict.fromkeys(
            ("249", "249.00", "249,00", "249.", "249,-", "249.--", "$249", "249 $"), 24900
        ),
        **dict.fromkeys(
            ("249 USD", "usd 249", "US$249", "249 dollars", "\u0662\u0664\u0669"), 24900
        ),
        **dict.fromkeys(("1,249.50", "1.249,5", "1 249.50", "1'249.50", "$\xa01,249.50"), 124950),
        **dict.fromkeys(("1,249", "1\u202f249", "1249"), 124900),
        "0": 0,
        "0.05": 5,
        "1.249.000": 124900000,
        "12,34,567.00": 123456700,
        "10000000000": 10**12,
    },
    "CAD": {"$1,249.50": 124950, "CA$1,249.50": 124950},
    "EUR": {"1.249,50\xa0\N{EURO SIGN}": 124950, "249,\N{EN DASH}": 24900},
    "JPY": {"\uffe524,900": 24900, "24.900": 24900, "24900\u5186": 24900},
    "KWD": {"1,249.500": 1249500, "KWD\xa01,249.500": 1249500, "1.249": 1249, "24.9": 24900},
    "CLF": {"1.2345": 12345},
}


def test_a_typed_price_is_an_amount_in_the_smallest_unit_up_to_a_limit() -> None:
    for currency, texts in TYPED.items():
        for text, amount in texts.items():
            with case(f"{currency} {text!r}"):
                assert typed_amount(text, currency) == amount
    with pytest.raises(InvalidBody, match=r"^refund: expected at most \$10,000,000,000\.00$"):
        typed_amount("10000000000.01", "USD", "refund")


@pytest.mark.parametrize(
    ("currency", "text", "question"),
    [
        ("USD", "249.505", "is 249.505 $249,505.00 or $249.50? "),
        ("USD", "249.999", "is 249.999 $249,999.00 or $249.99? "),
        ("KWD", "249,505", "is 249,505 KWD\xa0249,505.000 or KWD\xa0249.505? "),
        *(("USD", text, "") for text in ("-1", "+1", "1.234,567", "1.2345", "1,2,3", "12 34")),
        *(("USD", text, "") for text in ("0.500", "1.249 000", "1..5", ".5", "1e3", "a lot")),
        *(("USD", text, "") for text in ("USD", "$", "249 EUR", "\N{EURO SIGN}249", "9" * 17)),
        *(("USD", text, "") for text in ("1,249,50", "1249.505", "-", "249,-,")),
        ("JPY", "24.5", ""),
    ],
)
def test_what_is_no_price_is_refused_with_an_example_or_a_question(
    currency: str, text: str, question: str
) -> None:
    with pytest.raises(InvalidBody) as refused:
        typed_amount(text, currency)
    enter = "Enter" if question else "enter"
    example = {"USD": "249.00", "KWD": "249.000", "JPY": "249"}[currency]
    assert refused.value.message == f"amount: {question}{enter} a price such as {example}"


@pytest.mark.parametrize("currency", ["USD", "CAD", "CHF", "SEK", "JPY", "KWD", "CLF", "XAU"])
@pytest.mark.parametrize("amount", [0, 1, 99, 24900, 10**12])
def test_whatever_is_shown_of_an_amount_is_accepted_back(currency: str, amount: int) -> None:
    for shown in (plain_amount, money_in_words):
        assert typed_amount(shown(amount, currency), currency) == amount


def test_an_amount_has_the_sign_that_no_other_currency_has() -> None:
    assert money_in_words(-124950, "CAD") == "-CA$1,249.50"


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
    maxima = {0: 1, 1: 1, 3: 5, 9: 10, 10: 10, 11: 20, 2_147: 5_000}
    for highest, top in maxima.items():
        assert Bars("Requests", "requests", "Day", [("1 Nov", highest)]).top == top, highest
    # A chart of money says the amounts in their currency.
    values = [("1 Nov", 24_900), ("2 Nov", 100)]
    chart = Bars("Amount", "", "Day", values, "USD")
    assert chart.text == "Amount: $250.00 in all; the most, $249.00, on 1 Nov"
    assert chart.in_words(chart.top) == "$500.00"


def test_a_change_in_percent_has_a_sign() -> None:
    changes = [(112, 100), (0, 100), (100, 100), (5, 0)]
    told = ["+12%", "\N{MINUS SIGN}100%", "+0%", ""]
    assert [change_in_percent(*change) for change in changes] == told


def test_a_meter_warns_early_and_draws_nothing_without_a_limit() -> None:
    for used, width, tone, told in (
        (0, 0, "good", "0 of 60"),
        (47, 78.33, "good", "47 of 60"),
        (48, 80, "wait", "48 of 60 \N{EN DASH} nearly at the limit"),
        (60, 100, "bad", "60 of 60 \N{EN DASH} at the limit"),
        (90, 100, "bad", "90 of 60 \N{EN DASH} at the limit"),
    ):
        html = drawn("meter", "This minute", used, 60)
        assert f"This minute: {told}" in " ".join(re.sub("<.*?>", "", html).split())
        ((drawn_tone, drawn_width),) = re.findall(r'tone (\w+)" width="([\d.]+)%"', html)
        assert (drawn_tone, float(drawn_width)) == (tone, width)
    html = drawn("meter", "This minute", 90, None)
    assert "no limit" in html
    assert "<svg" not in html
