"""The operation that returns the sales in numbers."""

from datetime import date
from typing import Annotated

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.clock import utc
from petstore.domain.time_zones import zone_of
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.sales.model import By, Sales, day_range
from petstore.sales.store import get_sales

_DATE = {"expected": "a date such as 2026-12-24"}
_First = Annotated[
    date, Meta(description="The first day. By default six days before `to`.", extra=_DATE)
]
_Last = Annotated[date, Meta(description="The last day. By default today.", extra=_DATE)]
_TimeZone = Annotated[
    str,
    Meta(
        max_length=64,
        description=(
            "The time zone of the days (IANA), such as `Europe/Berlin`. By default the store's."
        ),
        examples=["Europe/Berlin"],
        extra={"expected": "the name of a time zone (IANA), such as Europe/Berlin"},
    ),
]


class GetSalesQuery(
    Struct, frozen=True, rename={"first": "from", "last": "to", "time_zone": "timeZone"}
):
    first: _First | UnsetType = UNSET
    last: _Last | UnsetType = UNSET
    time_zone: _TimeZone | UnsetType = UNSET
    by: Annotated[By, Meta(description="Group by `day` or `category`.")] = "day"


async def _get(context: Context, call: Call[None, GetSalesQuery]) -> Result[Sales]:
    query, services = call.query, context.services
    zone = services.settings.zone if query.time_zone is UNSET else zone_of(query.time_zone)
    days = day_range(query.first, query.last, zone, utc(services.clock()))
    rows = await get_sales(services.store, days, query.by, services.settings.currency)
    return Result(Sales(days.first, days.last, zone.key, query.by, rows))


_ROW = {"orders": 3, "amount": 74700, "returns": 0, "refunded": 0, "currency": "USD"}

OPERATIONS = (
    Operation(
        id="getSales",
        method="GET",
        path="/store/sales",
        tag="Store",
        summary="Count the sales",
        description=(
            "Returns how many orders were delivered between two days, both included, how many were"
            " returned, and the sums of their amounts and refunds, by day or by category. A"
            " returned order counts on the day of its delivery and on the day of its return. By"
            " day, each day has a row. There are at most 366 days. Amounts are added"
            " up by currency: a day or category with sales in several currencies has a row for"
            " each."
        ),
        handler=_get,
        scope="orders:read",
        query=GetSalesQuery,
        tagged=False,
        success=Success(
            200,
            "The sales.",
            Sales,
            {
                "from": "2026-11-20",
                "to": "2026-11-21",
                "timeZone": "Europe/Berlin",
                "by": "day",
                "rows": [
                    _ROW | {"orders": 0, "amount": 0, "day": "2026-11-20"},
                    _ROW | {"day": "2026-11-21"},
                ],
            },
        ),
    ),
)
