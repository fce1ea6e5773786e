"""``petstore sales``: the numbers as a table, CSV and JSON."""

import pytest

from petstore.console.numbers import money_in_words
from support.shop import Shop


@pytest.fixture
def category(shop: Shop) -> int:
    """A category in which a pet was sold."""
    category = 77_001
    pet = shop.ask("pets", "add", "Rex", "--category", category, "--status", "available")
    shop.succeed("orders", "sell", pet["id"], "--amount", 124_950)
    return category


def test_sales_are_printed_by_day(shop: Shop, category: int) -> None:
    assert category
    head, *rows = shop.succeed("sales").splitlines()
    assert head.split() == ["day", "orders", "amount", "returns", "refunded"]
    assert len(rows) == 7
    found = shop.ask("sales")
    assert rows[-1].split()[:2] == [found["to"], str(found["rows"][-1]["orders"])]


def test_sales_are_printed_by_category_as_csv(shop: Shop, category: int) -> None:
    lines = shop.succeed("sales", "--by", "category", "--csv").splitlines()
    assert lines[0] == "categoryId,orders,amount,returns,refunded,currency"
    (line,) = [line for line in lines if line.startswith(f"{category},")]
    _, orders, amount, _, _, currency = line.split(",")
    assert (int(amount), currency) == (124_950 * int(orders), "USD")


def test_amounts_are_printed_in_the_unit_of_the_currency(shop: Shop, category: int) -> None:
    _, *rows = shop.succeed("sales", "--by", "category").splitlines()
    (cells,) = [row.split() for row in rows if row.startswith(f"{category} ")]
    assert cells[2] == money_in_words(124_950 * int(cells[1]), "USD")


def test_a_range_without_sales_has_no_categories(shop: Shop) -> None:
    options = ("--from", "2001-01-01", "--to", "2001-01-02", "--by", "category")
    result = shop("sales", *options)
    assert (result.stdout, result.stderr) == ("", "None found.\n")
    assert shop.ask("sales", *options)["rows"] == []
