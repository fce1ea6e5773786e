"""Amounts of money as people type and read them."""

import pytest

from petstore.console.numbers import (
    count_in_words,
    money_in_words,
    plain_amount,
    shown_count,
    shown_money,
    typed_amount,
)
from petstore.errors import InvalidBody


@pytest.mark.parametrize(
    ("text", "amount"),
    [
        ("", None),
        ("249", 24900),
        ("249.00", 24900),
        ("249,00", 24900),
        ("249.5", 24950),
        ("0", 0),
        ("0.05", 5),
        ("1,249.50", 124950),
        ("1.249,50", 124950),
        ("1 249.50", 124950),
        ("1'249.50", 124950),
        ("1\N{NO-BREAK SPACE}249", 124900),
        ("1,249", 124900),
        ("1.249", 124900),
        ("1.249.000", 124900000),
        ("249 USD", 24900),
        ("USD 249", 24900),
        ("$249", 24900),
        ("249 $", 24900),
        ("10000000000", 10**12),
    ],
)
def test_a_typed_price_is_an_amount_in_the_smallest_unit(text: str, amount: int | None) -> None:
    assert typed_amount(text, "USD") == amount


@pytest.mark.parametrize(
    "text",
    [
        *("-1", "+1", "1.234,567", "1.2345", "1,2,3", "12 34", "0.500", "1.249 000", "1..5", ".5"),
        *("12.", "1e3", "a lot", "USD", "249 EUR", "€249", "$", "٢٤٩", "10000000000.01", "9" * 17),
    ],
)
def test_what_is_no_price_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InvalidBody, match=r"^amount: expected a price such as 249\.00, at most"):
        typed_amount(text, "USD")


@pytest.mark.parametrize(
    ("text", "currency", "amount"),
    [
        ("24900", "JPY", 24900),
        ("24,900", "JPY", 24900),
        ("24.9", "KWD", 24900),
        ("1.249", "KWD", 1249),
        ("1 249.5", "KWD", 1249500),
        ("1.2345", "CLF", 12345),
    ],
)
def test_a_currency_has_its_own_decimals(text: str, currency: str, amount: int) -> None:
    assert typed_amount(text, currency) == amount


def test_a_currency_without_decimals_takes_none() -> None:
    with pytest.raises(InvalidBody, match="such as 249, at most 1\u202f000\u202f000\u202f000"):
        typed_amount("24.5", "JPY")


@pytest.mark.parametrize("currency", ["USD", "JPY", "KWD", "CLF"])
@pytest.mark.parametrize("amount", [0, 1, 99, 24900, 10**12])
def test_what_a_form_shows_of_an_amount_is_the_same_amount(currency: str, amount: int) -> None:
    assert typed_amount(plain_amount(amount, currency), currency) == amount


def test_an_amount_is_shown_with_its_currency() -> None:
    assert money_in_words(124950, "USD") == "1\u202f249.50 USD"
    assert money_in_words(124950, "JPY") == "124\u202f950 JPY"
    shown = '<data value="0.05" data-currency="USD">0.05 USD</data>'
    assert shown_money(5, "USD") == shown


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
