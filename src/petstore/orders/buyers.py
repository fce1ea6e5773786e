"""Personal data of closed orders: removed when it is old, or when a buyer asks for it."""

import asyncio
from functools import partial
from typing import NamedTuple

from msgspec import UNSET

from petstore.clock import DAY, Clock, Milliseconds
from petstore.databases.contract import Statement, Store, Unit, placeholder_list
from petstore.databases.pages import opaque_parameter
from petstore.domain.names import name_key
from petstore.events.model import SERVICE, Author
from petstore.events.store import record
from petstore.orders.model import OPEN_STATUSES, ORDERS, Order, OrderFilter, without_personal_data
from petstore.orders.store import ORDERS_BY_WORD, order_event, search_orders
from petstore.periodic_tasks import PeriodicTask

_BATCH = 100
_PAUSE_SECONDS = 0.05
_CLOSED_AT = "coalesce(returned_at, delivered_at, cancelled_at)"  # as the index orders_with_buyers


class Forgotten(NamedTuple):
    """How many orders lost their buyer, and how many are open and still have it."""

    closed: int
    open: int


def forgetting(store: Store, clock: Clock, days: int) -> PeriodicTask:
    forget = partial(forget_old_buyers, store, clock, days)
    return PeriodicTask(forget, 60, "cannot delete expired buyer data")


async def forget_old_buyers(store: Store, clock: Clock, days: int) -> None:
    """Forget buyers of orders closed ``days`` ago, in batches, unless that is 0."""
    age = days * DAY
    while days and await store.write(forget_batch(clock() - age, clock())):  # noqa: ASYNC110 - waits for nothing
        await asyncio.sleep(_PAUSE_SECONDS)


def forget_batch(before: Milliseconds, now: Milliseconds) -> Unit[int]:
    rows = yield Statement(
        f"SELECT {ORDERS.columns} FROM orders"  # noqa: S608 - only names
        " WHERE coalesce(buyer, note, cancel_reason, return_reason) IS NOT NULL"
        f" AND {_CLOSED_AT} < /*sqlite*/ ?1 /*end*/ /*pg {opaque_parameter(1)} */"
        f" ORDER BY {_CLOSED_AT} LIMIT ?2 /*pg FOR UPDATE SKIP LOCKED */",
        (before, _BATCH),
        name="lock_orders_with_old_buyers",
    )
    yield from _forget([ORDERS.read(row) for row in rows], now, SERVICE)
    return len(rows)


async def forget_buyer(store: Store, buyer: str, clock: Clock, by: Author) -> Forgotten:
    """Forget a buyer, named exactly but for case, in closed orders."""
    closed: set[int] = set()
    still_open: set[int] = set()
    after: int | None = 0
    while after is not None:
        found = await search_orders(store, buyer, OrderFilter(), after, _BATCH)
        ids = [order.id for order in found.items if _is_of(order, buyer)]
        for order in await store.write(_forget_some(buyer, ids, clock(), by)):
            (still_open if order.status in OPEN_STATUSES else closed).add(order.id)
        after = found.next_after
    return Forgotten(len(closed), len(still_open))


def _forget_some(buyer: str, ids: list[int], now: Milliseconds, by: Author) -> Unit[list[Order]]:
    rows = yield Statement(
        f"SELECT {ORDERS.columns} FROM orders WHERE id IN ({placeholder_list(1, ids)})"  # noqa: S608
        " ORDER BY id /*pg FOR UPDATE */",
        ids,
        name="lock_orders_of_buyer",
    )
    orders = [order for order in map(ORDERS.read, rows) if _is_of(order, buyer)]
    yield from _forget([each for each in orders if each.status not in OPEN_STATUSES], now, by)
    return orders


def _is_of(order: Order, buyer: str) -> bool:
    return order.buyer is not UNSET and name_key(order.buyer) == name_key(buyer)


def _forget(orders: list[Order], now: Milliseconds, by: Author) -> Unit[None]:
    if not orders:
        return
    yield Statement(
        "UPDATE orders SET buyer = NULL, note = NULL,"  # noqa: S608
        f" cancel_reason = NULL, return_reason = NULL WHERE id IN ({placeholder_list(1, orders)})",
        [order.id for order in orders],
        name="forget_buyers",
    )
    for order in orders:
        yield from ORDERS_BY_WORD.replace(order.id, order.buyer or "", "")
    events = (order_event("order.updated", without_personal_data(order), order) for order in orders)
    yield record(now, *events, by=by)
