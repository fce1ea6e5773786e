"""Search orders by buyers, whatever case and marks; and by the time they were placed."""

from datetime import timedelta

import pytest
from msgspec import UNSET, UnsetType

from petstore.clock import MINUTE, utc
from petstore.databases.contract import Reader, Store
from petstore.databases.pages import Page
from petstore.domain.words import finds, typed_words, words_of
from petstore.events.store import Change
from petstore.orders.model import Order, OrderCreate, OrderFilter, OrderPatch, OrderStatus
from petstore.orders.store import list_orders, place_order, search_orders, update_order
from petstore.pets.model import NewPet
from support.changes import NOW, create_pets
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

BUYERS = ("Jane Doe", "J\u00c4NE", "O'Brien", "Zo\u00eb", "日本語", "\u0301", "x" * 200, "ß" * 200)
TEXTS = ("j", "doe ja", "jäne", "zoe", "obrien", "本", "ss", "x" * 100, "ß" * 100, "\u0301")


async def place(store: Store, *buyers: str) -> None:
    """Place an order for each buyer, one minute after the other; the first pet has number 1."""
    await store.write(create_pets([NewPet("Bella", 1, "available")] * len(buyers)))
    for number, buyer in enumerate(buyers):
        new = OrderCreate(number + 1, buyer=buyer)
        await store.write(place_order(Change(NOW + number * MINUTE), new))


async def walk(
    store: Reader, text: str, wanted: OrderFilter | None = None, limit: int = 100
) -> list[Order]:
    """Return all orders that a search finds."""
    found: list[Order] = []
    page: Page[Order] = Page([], 0)
    while page.next_after is not None:
        page = await search_orders(store, text, wanted or OrderFilter(), page.next_after, limit)
        found += page.items
    return found


async def ids(store: Store, wanted: OrderFilter, limit: int, *, newest_first: bool) -> list[int]:
    """Return the ids of all pages of a list."""
    found: list[int] = []
    after: int | None = None
    while True:
        page = await list_orders(store, wanted, after, limit, newest_first=newest_first)
        found += [order.id for order in page.items]
        after = page.next_after
        if after is None:
            return found


@pytest.mark.parametrize("limit", [1, 3, 100])
async def test_any_words_find_buyers_by_ascending_id(store: Store, limit: int) -> None:
    await place(store, *BUYERS)
    everyone = (await list_orders(store, OrderFilter(), None, 100)).items
    for text in TEXTS:
        wanted = [
            order for order in everyone if finds(typed_words(text), words_of(str(order.buyer)))
        ]
        assert await walk(store, text, limit=limit) == wanted, text


async def test_a_search_goes_together_with_filters(store: Store) -> None:
    await place(store, "Jane", "Jane", "Jane")
    await store.write(update_order(Change(NOW), 2, OrderPatch(status="approved")))
    for wanted, found in {
        OrderFilter("placed"): [1, 3],
        OrderFilter(pet_id=2): [2],
        OrderFilter(placed_before=utc(NOW + MINUTE)): [1],
        OrderFilter("placed", 2): [],
    }.items():
        assert [order.id for order in await walk(store, "j", wanted)] == found
    for buyer, ids_of_j, ids_of_z in (("Zoë", [1, 3], [2]), (None, [1, 3], [])):
        await store.write(update_order(Change(NOW), 2, OrderPatch(buyer=buyer)))
        for text, found in (("j", ids_of_j), ("zo", ids_of_z)):
            assert [order.id for order in await walk(store, text)] == found


@pytest.mark.parametrize("newest_first", [False, True])
@pytest.mark.parametrize("limit", [1, 2, 100])
async def test_orders_placed_before_a_moment_are_listed(
    store: Store, limit: int, *, newest_first: bool
) -> None:
    await place(store, *["Jane"] * 12)
    await store.write(update_order(Change(NOW), 2, OrderPatch(status="approved")))
    tick = timedelta(microseconds=1)
    for moment, first in (
        *((utc(NOW), 0), (utc(NOW) + tick, 1), (utc(NOW + 3 * MINUTE), 3)),
        *((utc(NOW + 3 * MINUTE) - tick, 3), (utc(NOW + 3 * MINUTE + 1), 4)),
        *((utc(253_402_300_799_999), 12), (utc(-62_135_596_800_000), 0)),
    ):
        wanted = range(1, first + 1)
        statuses: dict[OrderStatus | UnsetType, set[int]] = {
            UNSET: {*wanted},
            "placed": {*wanted} - {2},
            "approved": {*wanted} & {2},
        }
        for status, expected in statuses.items():
            filters = OrderFilter(status, placed_before=moment)
            found = await ids(store, filters, limit, newest_first=newest_first)
            assert found == sorted(expected, reverse=newest_first), (moment, status)


async def test_a_clock_may_be_minutes_late(store: Store) -> None:
    await place(store, "Jane", "Jane")
    await store.write(do("UPDATE orders SET placed_at = placed_at - 240000 WHERE id = 2"))
    for newest_first in (False, True):
        wanted = OrderFilter(placed_before=utc(NOW))
        assert await ids(store, wanted, 1, newest_first=newest_first) == [2]


async def test_the_last_page_does_not_look_at_all_later_orders(store: Store) -> None:
    await store.write(
        do(
            "INSERT INTO orders (pet_id, status, placed_at)"
            " WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers"
            " WHERE n < 500) SELECT n, 'cancelled', n * 60000 FROM numbers"
        )
    )
    wanted = OrderFilter("cancelled", placed_before=utc(3 * MINUTE))
    page = await list_orders(store, wanted, None, 20)
    assert ([order.id for order in page.items], page.next_after) == ([1, 2], None)
