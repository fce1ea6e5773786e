"""Amounts of money as people type and read them."""

import pytest

from petstore.console.numbers import (
    count_in_words,
    money_in_words,
    plain_amount,
    shown_count,
    typed_amount,
)
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


def test_a_typed_price_is_an_amount_in_the_smallest_unit() -> None:
    for currency, texts in TYPED.items():
        for text, amount in texts.items():
            with case(f"{currency} {text!r}"):
                assert typed_amount(text, currency) == amount


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


def test_a_price_above_the_limit_is_refused_with_it() -> None:
    with pytest.raises(InvalidBody, match=r"^refund: expected at most \$10,000,000,000\.00$"):
        typed_amount("10000000000.01", "USD", "refund")


@pytest.mark.parametrize("currency", ["USD", "CAD", "CHF", "SEK", "JPY", "KWD", "CLF", "XAU"])
@pytest.mark.parametrize("amount", [0, 1, 99, 24900, 10**12])
def test_whatever_is_shown_of_an_amount_is_accepted_back(currency: str, amount: int) -> None:
    for shown in (plain_amount, money_in_words):
        assert typed_amount(shown(amount, currency), currency) == amount


@pytest.mark.parametrize(
    ("amount", "currency", "shown"),
    [
        (124950, "USD", "$1,249.50"),
        (5, "USD", "$0.05"),
        (-124950, "CAD", "-CA$1,249.50"),
        (124950, "JPY", "\xa5124,950"),
        (1249500, "KWD", "KWD\xa01,249.500"),
    ],
)
def test_an_amount_is_shown_with_its_currency(amount: int, currency: str, shown: str) -> None:
    assert money_in_words(amount, currency) == shown


@pytest.mark.parametrize(
    ("count", "told"),
    [
        (0, "0 pets"),
        (1, "1 pet"),
        (253, "253 pets"),
        (10_000, "10\u202f000 pets"),
        (10_001, "more than 10\u202f000 pets"),
    ],
)
def test_pets_are_counted_up_to_ten_thousand(count: int, told: str) -> None:
    assert count_in_words(count, "pet") == told


def test_a_count_is_shown_as_the_reader_writes_numbers() -> None:
    assert shown_count(2512, "category", "categories") == (
        '<data value="2512">2\u202f512</data> categories'
    )
    assert shown_count(10_001, "order") == (
        'more than <data value="10000">10\u202f000</data> orders'
    )
