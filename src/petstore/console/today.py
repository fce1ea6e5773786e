"""The first page of the staff: what waits, what was sold, what is in stock, what others did."""

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from petstore.clock import utc
from petstore.console.history import HistoryLine, newest_acts
from petstore.console.page import ConsolePage, PageRequest
from petstore.console.stock import stock_of
from petstore.events.model import EVENT_TYPES, kind_of
from petstore.http.messages import Response
from petstore.interface.operation import Result
from petstore.orders.model import Order, OrderStatus
from petstore.sales.model import Sales, SalesRow, totals_of

_IN_A_LIST = 10
_PAGES_READ = 5  # of events, of which many may be of the person itself
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
    return visit.page(
        "today.html",
        placed=placed,
        approved=approved,
        animals=await _animals(visit, [*placed.orders, *approved.orders]),
        sold=await _sold(visit),
        stock=await stock_of(visit, _IN_A_LIST),
        in_a_list=_IN_A_LIST,
        has_failing_webhooks=await _has_failing_webhooks(visit),
        others=await _others(visit),
        now=visit.services.clock(),
        moment=utc(visit.services.clock()),
    )


async def _oldest(visit: PageRequest, status: OrderStatus) -> _OrderList:
    query = {"status": status, "sort": "id", "limit": _IN_A_LIST}
    found: Result[list[Order]] = await visit.execute("listOrders", query=query)
    return _OrderList(found.value, bool(found.next))


async def _animals(visit: PageRequest, orders: Sequence[Order]) -> dict[int, str]:
    pets = await visit.pets_of({order.pet_id for order in orders})
    return {pet.id: pet.name for pet in pets.values()}


async def _has_failing_webhooks(visit: PageRequest) -> bool:
    if not visit.may("listWebhooks"):
        return False
    query = {"failing": "true", "limit": 1}
    return bool((await visit.execute("listWebhooks", query=query)).value)


async def _sold(visit: PageRequest) -> _Sold:
    zone, currency = visit.time_zone, visit.services.currency
    today = utc(visit.services.clock()).astimezone(zone).date()
    monday = today - today.weekday() * _ONE_DAY
    first, same_day = monday - _WEEK, today - _WEEK
    query = {"from": first, "to": today, "timeZone": zone.key}
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


async def _others(visit: PageRequest) -> list[HistoryLine]:
    kinds = [each for each in EVENT_TYPES if kind_of(each) in _RESOURCES]
    query, own = {"type": kinds}, visit.author.actor
    lines, _ = await newest_acts(visit, query, _IN_A_LIST, pages=_PAGES_READ, not_by=own)
    return lines


PAGES = (ConsolePage("GET", "/today", _show, "listOrders"),)
