"""Sales: delivered orders, by day in any time zone or by category."""

from collections.abc import Iterable
from datetime import date, datetime, timedelta
from typing import Annotated, Literal, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.clock import Milliseconds, milliseconds
from petstore.errors import InvalidParameter
from petstore.orders.model import Currency
from petstore.pets.model import CategoryId

By: TypeAlias = Literal["day", "category"]

MAX_CATEGORIES = 1_000
"""The most categories of one response; the others share a row."""

_DEFAULT_DAYS = 7
_MAX_DAYS = 366
_ONE_DAY = timedelta(days=1)
# The days before and after them exist in every time zone.
_FIRST, _LAST = date(1970, 1, 3), date(9999, 12, 29)


class SalesRow(Struct, frozen=True, rename="camel"):
    """The sales and returns of a day or of a category, in one currency."""

    orders: Annotated[int, Meta(description="How many orders were delivered.")]
    amount: Annotated[
        int, Meta(description="The sum of their amounts; an order without an amount adds nothing.")
    ]
    returns: Annotated[int, Meta(description="How many orders were returned.")]
    refunded: Annotated[
        int, Meta(description="The sum of their refunds. `amount` minus it is what the shop took.")
    ]
    currency: Currency
    day: Annotated[date, Meta(description="The day. Only by day.")] | UnsetType = UNSET
    category_id: (
        Annotated[
            CategoryId,
            Meta(
                description=(
                    "The category of the pets when they were sold. Absent by day, and for all"
                    " categories after the first 1,000."
                )
            ),
        ]
        | UnsetType
    ) = UNSET

    @property
    def taken(self) -> int:
        return self.amount - self.refunded


class Sales(Struct, frozen=True, rename={"first": "from", "last": "to", "time_zone": "timeZone"}):
    """The sales between two days, both included."""

    first: Annotated[date, Meta(description="The first day.")]
    last: Annotated[date, Meta(description="The last day.")]
    time_zone: Annotated[str, Meta(description="The time zone of the days.")]
    by: Annotated[By, Meta(description="Group by day or category.")]
    rows: Annotated[list[SalesRow], Meta(description="The rows, by day or by category.")]


class DayRange(NamedTuple):
    """Days in a time zone, the first and the last one included."""

    first: date
    last: date
    zone: ZoneInfo

    @property
    def days(self) -> list[date]:
        count = (self.last - self.first).days + 1
        return [self.first + index * _ONE_DAY for index in range(count)]

    @property
    def bounds(self) -> list[Milliseconds]:
        """When each day begins, and when the last ends: without midnight, when clocks change."""
        days = (*self.days, self.last + _ONE_DAY)
        return [
            milliseconds(datetime(day.year, day.month, day.day, tzinfo=self.zone)) for day in days
        ]


def day_range(
    first: date | UnsetType, last: date | UnsetType, zone: ZoneInfo, now: datetime
) -> DayRange:
    """Return the days from ``first`` to ``last``: by default the last seven, up to today."""
    until = now.astimezone(zone).date() if last is UNSET else last
    _require_day("to", until)
    since = first if first is not UNSET else max(_FIRST, until - (_DEFAULT_DAYS - 1) * _ONE_DAY)
    _require_day("from", since)
    if not 0 <= (until - since).days < _MAX_DAYS:
        msg = f"from: expected a date up to 'to', and at most {_MAX_DAYS} days in all"
        raise InvalidParameter(msg)
    return DayRange(since, until, zone)


def totals_of(rows: Iterable[SalesRow], currency: str) -> list[SalesRow]:
    """Return the sums of rows by currency, the store's first; without sales it is the only one."""
    totals = {currency: SalesRow(0, 0, 0, 0, currency)}
    for row in rows:
        before = totals.get(row.currency, SalesRow(0, 0, 0, 0, row.currency))
        totals[row.currency] = SalesRow(
            row.orders + before.orders,
            row.amount + before.amount,
            row.returns + before.returns,
            row.refunded + before.refunded,
            row.currency,
        )
    found = [each for each in totals.values() if each.orders or each.returns]
    return found or [totals[currency]]


def _require_day(name: str, day: date) -> None:
    if not _FIRST <= day <= _LAST:
        raise InvalidParameter(f"{name}: expected a date from {_FIRST} to {_LAST}")
