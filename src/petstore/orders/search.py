"""Search orders by the beginning of the names of their buyers, along the index of their keys."""

from petstore.databases.contract import Reader, Statement
from petstore.databases.pages import Matches
from petstore.databases.planner import SHORT, in_short, unplanned
from petstore.domain.names import end_of_prefix, plain_key
from petstore.domain.words import MatchPosition, position_at_start
from petstore.orders.model import Order, OrderFilter
from petstore.orders.store import COLUMNS, order_of

MAX_SCANNED = 2_000
"""The most orders that one page of a search looks at."""

# As for the names of animals (petstore.pets.search).
_AFTER = (
    "/*sqlite*/ (buyer_key, id) > (?2, ?3 COLLATE BINARY) /*end*/"
    f" /*pg (buyer_key, id) > ({unplanned(2, str)}, ?3) */"
)
_BEFORE_END = f" AND buyer_key < /*sqlite*/ ?4 /*end*/ /*pg {unplanned(4, str)} */"
_CHUNK = 200


async def search_orders(
    store: Reader, prefix: str, wanted: OrderFilter, after: MatchPosition | None, limit: int
) -> Matches[Order]:
    """Return the first ``limit`` orders behind ``after`` whose buyers' names begin with ``prefix``.

    Case and marks on letters do not matter. With filters, one page looks at ``MAX_SCANNED`` orders
    at most. So it may have fewer than ``limit``, even none, while there is a next one.
    """
    # One more than the page holds shows whether there is a next one.
    size = limit + 1 if wanted == OrderFilter() else _CHUNK
    found: list[Order] = []
    scanned = 0
    while True:
        rows = await store.read(_select_by_buyer(prefix, after, size))
        for *row, key in rows:
            order = order_of(tuple(row))
            if wanted.admits(order):
                if len(found) == limit:
                    return Matches(found, after)
                found.append(order)
            after = position_at_start(key, order.id)
        scanned += len(rows)
        if len(rows) < size:
            return Matches(found, None)
        if scanned >= MAX_SCANNED:
            return Matches(found, after)


def _select_by_buyer(prefix: str, after: MatchPosition | None, limit: int) -> Statement:
    """Return the SELECT of orders by buyer, ``after`` a position: each row ends with its key."""
    first = plain_key(prefix)
    key, order_id = (first, 0) if after is None else max((first, 0), (after.name, after.id))
    end = end_of_prefix(first)
    conditions = f"buyer_key IS NOT NULL AND {_AFTER}{_BEFORE_END if end else ''}"
    sql = f"SELECT {COLUMNS}, buyer_key FROM orders WHERE {conditions} ORDER BY buyer_key, id"  # noqa: S608
    return Statement(
        f"{in_short(sql) if limit <= SHORT + 1 else sql} LIMIT ?1",
        (limit, key, order_id, end) if end else (limit, key, order_id),
        name="search_orders",
    )
