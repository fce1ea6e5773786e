"""The first page of the staff: what to do, late first, then what was sold and what is low."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from typing import NamedTuple, get_args

from msgspec import UNSET

from petstore.categories.pages import stock_of
from petstore.console.history import newest_acts
from petstore.console.numbers import change_in_percent
from petstore.console.page import ConsolePage, PageRequest
from petstore.events.model import ResourceEventType
from petstore.http.messages import Response
from petstore.orders.model import Order
from petstore.orders.pages import Card, cards_of, open_orders
from petstore.sales.model import Sales, SalesRow, totals_of

_TO_DO, _LOWEST, _ACTS = 12, 5, 8
_READ = 100
_PAGES_READ = 5  # of events, of which many may be of the person itself
_ONE_DAY = timedelta(days=1)


class _Takings(NamedTuple):
    """What was sold by currency, now and ``before``; ``changes`` are percents by currency."""

    name: str
    sold: Sequence[SalesRow]
    before: str
    sold_before: Sequence[SalesRow]

    @property
    def changes(self) -> dict[str, str]:
        before = {row.currency: row.taken for row in self.sold_before}
        return {
            row.currency: change_in_percent(row.taken, before.get(row.currency, 0))
            for row in self.sold
        }


async def _show(request: PageRequest) -> Response:
    placed, more_placed = await open_orders(request, "placed")
    approved, more_approved = await open_orders(request, "approved")
    failing = {"failing": "true", "limit": 1}
    by, own = {"type": get_args(ResourceEventType)}, request.caller.actor
    others, _ = await newest_acts(request, by, _ACTS, pages=_PAGES_READ, not_by=own)
    categories = (await request.execute("listCategories", query={"limit": _READ})).value
    return request.page(
        "today.html",
        counts=[
            ("placed", "To approve", len(placed), more_placed),
            ("approved", "To hand over", len(approved), more_approved),
        ],
        tasks=await _tasks(request, [*placed, *approved]),
        periods=await _periods(request),
        lowest=(await stock_of(request, {each.id: each for each in categories}))[:_LOWEST],
        has_failing_webhooks=request.may("listWebhooks")
        and bool((await request.execute("listWebhooks", query=failing)).value),
        others=others,
    )


async def _tasks(request: PageRequest, orders: Sequence[Order]) -> list[Card]:
    """Return what to do first: what is late, then what is due, then the oldest of the others."""

    def due(order: Order) -> tuple[bool, datetime]:
        moment = order.reserved_until if order.status == "placed" else order.ship_date
        return moment is UNSET, moment or order.placed_at

    return await cards_of(request, sorted(orders, key=due)[:_TO_DO])


async def _periods(request: PageRequest) -> list[_Takings]:
    currency, today = request.services.settings.currency, request.today
    monday = today - today.weekday() * _ONE_DAY
    first, same_day = monday - 7 * _ONE_DAY, today - 7 * _ONE_DAY
    query = {"from": first, "to": today}
    sales: Sales = (await request.execute("getSales", query=query)).value

    def total(since: date, until: date) -> list[SalesRow]:
        rows = (row for row in sales.rows if row.day and since <= row.day <= until)
        return totals_of(rows, currency)

    weekday = f"Last {today:%A}"
    return [
        _Takings("Today so far", total(today, today), weekday, total(same_day, same_day)),
        _Takings(
            *("This week so far", total(monday, today)),
            *("Same days last week", total(first, same_day)),
        ),
    ]


PAGES = (ConsolePage("GET", "/today", _show, "listOrders"),)
