"""Sales and returns are counted by day and category, exactly."""

from datetime import date, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from msgspec import UNSET

from petstore.clock import HOUR, milliseconds, utc
from petstore.databases.contract import Store
from petstore.events.store import Change
from petstore.orders.model import MAX_AMOUNT, OrderCreate, OrderPatch
from petstore.orders.store import place_order, update_order
from petstore.pets.model import NewPet
from petstore.sales.model import By, SalesRow, day_range
from petstore.sales.store import get_sales
from support.changes import create_pets
from support.stores import do
from support.waiting import rounds_of

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BERLIN = ZoneInfo("Europe/Berlin")
FIRST, LAST = date(2026, 10, 24), date(2026, 10, 26)  # the clocks go back on the day between
DAYS = day_range(FIRST, LAST, BERLIN, datetime.now(BERLIN))


def at(day: int, hour: int, minute: int = 0, *, fold: int = 0) -> int:
    """Return a moment in October 2026, in Berlin."""
    return milliseconds(datetime(2026, 10, day, hour, minute, tzinfo=BERLIN, fold=fold))


async def sell(store: Store, now: int, amount: int | None = None, **others: Any) -> int:
    """Sell a pet over the counter; return the number of the order."""
    currency, category = others.get("currency", "USD"), others.get("category", 1)
    (pet,) = await store.write(create_pets([NewPet("Bella", category, "available")]))
    new = OrderCreate(pet.id, amount=UNSET if amount is None else amount, complete=True)
    return (await store.write(place_order(Change(now, currency=currency), new))).id


async def by_day(store: Store) -> list[tuple[int, str, int, int]]:
    """Return the day of the month, currency, orders and amount of each row."""
    rows = await get_sales(store, DAYS, "day", "USD")
    return [(row.day.day, row.currency, row.orders, row.amount) for row in rows if row.day]


async def test_a_sale_counts_on_its_day_in_the_time_zone(store: Store) -> None:
    assert await by_day(store) == [(24, "USD", 0, 0), (25, "USD", 0, 0), (26, "USD", 0, 0)]
    assert await get_sales(store, DAYS, "category", "USD") == []
    for moment in (
        *(at(24, 0) - 1, at(27, 0)),  # neither is in the range
        *(at(24, 0), at(25, 0) - 1),
        *(at(25, 0), at(25, 2, 30), at(25, 2, 30, fold=1), at(26, 0) - 1),
        *(at(26, 0), at(27, 0) - 1),
    ):
        await sell(store, moment, 100)
    assert await by_day(store) == [(24, "USD", 2, 200), (25, "USD", 4, 400), (26, "USD", 2, 200)]


async def test_each_currency_has_a_row_with_an_exact_sum_and_that_of_the_store_comes_first(
    store: Store,
) -> None:
    for amount in (None, 0, MAX_AMOUNT):  # an order without an amount is an order
        await sell(store, at(24, 12), amount)
    await sell(store, at(24, 12), 7, currency="EUR")
    await sell(store, at(26, 12), 9, currency="EUR")
    # Sums may be beyond 64 bits.
    await store.write(do(f"UPDATE orders SET amount = {2**63 - 1} WHERE amount < 8"))  # noqa: S608
    assert await by_day(store) == [
        *((24, "USD", 3, MAX_AMOUNT + 2**63 - 1), (24, "EUR", 1, 2**63 - 1)),
        *((25, "USD", 0, 0), (26, "USD", 0, 0), (26, "EUR", 1, 9)),
    ]


async def test_only_a_delivered_order_is_a_sale_at_its_latest_price(store: Store) -> None:
    (pet,) = await store.write(create_pets([NewPet("Bella", 1, "available")]))
    new = OrderCreate(pet.id, amount=65_000)
    placed = await store.write(place_order(Change(at(24, 12)), new))
    assert (await by_day(store))[0] == (24, "USD", 0, 0)
    for day, patch in (
        (24, OrderPatch(status="approved")),
        (25, OrderPatch(status="delivered")),
        (26, OrderPatch(amount=6_500)),
    ):
        await store.write(update_order(Change(at(day, 13)), placed.id, patch))
    assert await by_day(store) == [(24, "USD", 0, 0), (25, "USD", 1, 6_500), (26, "USD", 0, 0)]


async def test_a_return_counts_on_its_own_day_and_the_sale_stays_on_its_day(store: Store) -> None:
    for category, refund in ((3, UNSET), (3, 30), (4, 0)):
        sold = await sell(store, at(24, 12), 100, category=category)
        patch = OrderPatch(status="returned", refund=refund)
        await store.write(update_order(Change(at(26, 12)), sold, patch))
    await sell(store, at(26, 12))
    rows = await get_sales(store, DAYS, "day", "USD")
    assert [(row.orders, row.amount, row.returns, row.refunded) for row in rows] == [
        *((3, 300, 0, 0), (0, 0, 0, 0), (1, 0, 3, 130))
    ]
    of_day = day_range(LAST, LAST, BERLIN, datetime.now(BERLIN))
    assert await get_sales(store, of_day, "category", "USD") == [
        SalesRow(1, 0, 0, 0, "USD", category_id=1),
        SalesRow(0, 0, 2, 130, "USD", category_id=3),
        SalesRow(0, 0, 1, 0, "USD", category_id=4),
    ]
    # Without an amount it is in the currency that the store has now.
    assert (await get_sales(store, of_day, "category", "EUR"))[0].currency == "EUR"


async def test_sales_are_counted_by_the_category_of_their_time(store: Store) -> None:
    for category in (3, -(2**63), 3):
        await sell(store, at(24, 12), 100, category=category)
    await store.write(do("UPDATE pets SET category_id = 9"))
    await store.write(do("UPDATE orders SET category_id = NULL WHERE id = 3"))
    assert await get_sales(store, DAYS, "category", "USD") == [
        SalesRow(1, 100, 0, 0, "USD", category_id=-(2**63)),
        SalesRow(1, 100, 0, 0, "USD", category_id=3),
        SalesRow(1, 100, 0, 0, "USD"),
    ]


async def test_categories_beyond_the_first_thousand_share_a_row(store: Store) -> None:
    await store.write(
        do(
            "INSERT INTO orders (pet_id, status, placed_at, amount, delivered_at, category_id)"  # noqa: S608
            f" WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
            f" WHERE n < 1002) SELECT n, 'delivered', 0, 1, {at(24, 12)}, n"
            " FROM numbers"
        )
    )
    rows = await get_sales(store, DAYS, "category", "USD")
    assert rows[-1] == SalesRow(2, 2, 0, 0, "USD")
    assert [row.category_id for row in rows[:-1]] == [*range(1, 1001)]


async def test_a_year_is_counted_and_others_have_the_event_loop_between_weeks_and_categories(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    moments = [at(1, 0) + hour * HOUR for hour in range(0, 366 * 24, 73)]
    for category, moment in enumerate(moments):
        await sell(store, moment, 1, category=category)
    monkeypatch.setattr("petstore.time_slices._SLICE_SECONDS", 0)
    year = day_range(date(2026, 10, 1), date(2027, 10, 1), BERLIN, datetime.now(BERLIN))
    rows = await get_sales(store, year, "day", "USD")
    assert len(rows) == 366
    sold_on = [utc(moment).astimezone(BERLIN).date() for moment in moments]
    assert [row.day for row in rows if row.orders] == sold_on
    reads: tuple[tuple[By, int], ...] = (("day", 100), ("category", 73 + 121))
    for by, least in reads:
        (rounds,) = await rounds_of(get_sales(store, year, by, "USD"))
        assert rounds > least
