"""The pages of the whole shop: what waits, was sold and is in stock today, and the inventory."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from msgspec import UNSET

from petstore.clock import utc
from petstore.console.charts import ChartPart, Stacked, stacked
from petstore.console.history import newest_acts
from petstore.console.page import ConsolePage, PageRequest
from petstore.domain.time_zones import local_time
from petstore.events.model import EVENT_TYPES, kind_of
from petstore.http.messages import Response
from petstore.orders.model import OPEN_STATUSES, Order, OrderStatus
from petstore.pets.model import CategoryCounts, Inventory
from petstore.sales.model import Sales, SalesRow, totals_of

_IN_A_LIST = 10
_PAGES_READ = 5  # of events, of which many may be of the person itself
_OPEN_PAGES_READ = 3  # of open orders: no shop has more than 300 of a kind
_DRAWN_CATEGORIES = 30
_OTHERS = "all other categories"
_RESOURCES = {"pet", "order", "category"}
_WEEK = timedelta(days=7)
_ONE_DAY = timedelta(days=1)


class _OrderList(NamedTuple):
    """Orders that somebody should look at, the most urgent first; there may be more."""

    orders: Sequence[Order]
    has_more: bool


class _Sold(NamedTuple):
    """What was sold ``today`` and in this week, each by currency, and in the week before.

    ``same_day`` is the whole of the same weekday in the last week, and ``until_same_day`` what that
    week had until its end.
    """

    today: date
    so_far: Sequence[SalesRow]
    same_day: Sequence[SalesRow]
    week: Sequence[SalesRow]
    until_same_day: Sequence[SalesRow]
    last_week: Sequence[SalesRow]


async def _show(visit: PageRequest) -> Response:
    placed, approved = await _oldest(visit, "placed"), await _oldest(visit, "approved")
    late = {order.id: days_late(order, visit) for order in (*placed.orders, *approved.orders)}
    pets = await visit.pets_of({order.pet_id for order in (*placed.orders, *approved.orders)})
    failing = {"failing": "true", "limit": 1}
    kinds = [each for each in EVENT_TYPES if kind_of(each) in _RESOURCES]
    by, own = {"type": kinds}, visit.author.actor
    others, _ = await newest_acts(visit, by, _IN_A_LIST, pages=_PAGES_READ, not_by=own)
    return visit.page(
        "today.html",
        placed=placed,
        approved=approved,
        late=late,
        pets={pet.id: pet.name for pet in pets.values()},
        sold=await _sold(visit),
        stock=await _stock(visit, _IN_A_LIST),
        in_a_list=_IN_A_LIST,
        has_failing_webhooks=visit.may("listWebhooks")
        and bool((await visit.execute("listWebhooks", query=failing)).value),
        others=others,
        now=visit.services.clock(),
        moment=utc(visit.services.clock()),
    )


async def _oldest(visit: PageRequest, status: OrderStatus) -> _OrderList:
    orders, _ = await open_orders(visit, status)
    return _OrderList(orders[:_IN_A_LIST], len(orders) > _IN_A_LIST)


def days_late(order: Order, visit: PageRequest) -> int:
    """Return for how many days an open order should have been handed over."""
    if order.ship_date is UNSET or order.status not in OPEN_STATUSES:
        return 0
    return max(0, (visit.today - local_time(order.ship_date, visit.time_zone).date()).days)


async def open_orders(
    visit: PageRequest, status: OrderStatus, cursor: str = ""
) -> tuple[list[Order], str]:
    """Return the open orders of a status, the latest first and then the oldest.

    If there are too many for one list, the cursor of the others comes with them.
    """
    orders = list[Order]()
    for _ in range(_OPEN_PAGES_READ):
        query = {"status": status, "limit": 100, "cursor": cursor or None}
        found = await visit.execute("listOrders", query=query)
        orders += found.value
        cursor = found.next
        if not cursor:
            break
    return sorted(orders, key=lambda order: -days_late(order, visit)), cursor


async def _sold(visit: PageRequest) -> _Sold:
    currency = visit.services.currency
    today = visit.today
    monday = today - today.weekday() * _ONE_DAY
    first, same_day = monday - _WEEK, today - _WEEK
    query = {"from": first, "to": today}
    sales: Sales = (await visit.execute("getSales", query=query)).value

    def total(since: date, until: date) -> list[SalesRow]:
        rows = (row for row in sales.rows if row.day and since <= row.day <= until)
        return totals_of(rows, currency)

    return _Sold(
        today,
        total(today, today),
        total(same_day, same_day),
        total(monday, today),
        total(first, same_day),
        total(first, monday - _ONE_DAY),
    )


class _CategoryStock(NamedTuple):
    """The pets of a category. What all categories beyond the first ones share has no ``id``.

    In the ``chart``, the category with the most pets has the whole width.
    """

    id: int | None
    name: str
    counts: CategoryCounts
    chart: Stacked


class _Stock(NamedTuple):
    """All pets with a status, and those of each category: the most to sell come first."""

    chart: Stacked
    categories: Sequence[_CategoryStock]


async def _stock(visit: PageRequest, named: int | None = None) -> _Stock:
    """Return the stock as it is now; the first categories have their names, all by default."""
    found: Inventory = (await visit.execute("getInventory", query={"by": "category"})).value
    counts = [] if found.categories is UNSET else sorted(found.categories, key=_to_sell_first)
    ids = [each.category_id for each in counts[:named] if each.category_id is not UNSET]
    names = await visit.category_names(ids)
    scale = max((_total(each) for each in counts), default=0)
    return _Stock(
        stacked("by-status", "Pets by status", "pets", "Status", _parts(found)),
        [_stock_in(each, names, scale) for each in counts],
    )


def _stock_in(counts: CategoryCounts, names: dict[int, str], scale: int) -> _CategoryStock:
    if counts.category_id is UNSET:
        category_id, name = None, _OTHERS
    else:
        category_id = counts.category_id
        name = names.get(category_id, f"category {category_id}")
    chart = stacked("by-category", name, "pets", "Status", _parts(counts), scale)
    return _CategoryStock(category_id, name, counts, chart)


def _parts(counts: Inventory | CategoryCounts) -> list[ChartPart]:
    return [
        ChartPart("available", counts.available, "good"),
        ChartPart("pending", counts.pending, "wait"),
        ChartPart("sold", counts.sold, "done"),
    ]


def _to_sell_first(counts: CategoryCounts) -> tuple[bool, int, int]:
    """Return by what categories are sorted: what all the others share comes last."""
    return counts.category_id is UNSET, -counts.available - counts.pending, -counts.sold


def _total(counts: CategoryCounts) -> int:
    return counts.available + counts.pending + counts.sold


async def _inventory(visit: PageRequest) -> Response:
    return visit.page("inventory.html", stock=await _stock(visit), drawn=_DRAWN_CATEGORIES)


PAGES = (
    ConsolePage("GET", "/today", _show, "listOrders"),
    ConsolePage("GET", "/inventory", _inventory, "getInventory"),
)
