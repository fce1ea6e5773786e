"""Sales in the database, read some weeks at a time along the indexes."""

from collections import defaultdict
from collections.abc import Iterator
from datetime import date, timedelta
from operator import add
from typing import TypeAlias

from msgspec import UNSET

from petstore.clock import DAY
from petstore.databases.contract import Reader, Statement
from petstore.databases.pages import opaque_parameter
from petstore.sales.model import MAX_CATEGORIES, By, DayRange, DayRun, SalesRow, stretches
from petstore.time_slices import TimeSlices

# A sum of amounts may exceed an int64, but neither of these parts does.
_PART = 1_000_000
_FOUR_WEEKS = 28 * DAY
_COUNTED = (("delivered_at", "amount"), ("returned_at", "refund"))

_Key: TypeAlias = tuple[date | None, int | None, str]
_Totals: TypeAlias = defaultdict[_Key, list[int]]
"""How many orders there are and their sum, then how many returns, by day, category and currency."""


async def get_sales(store: Reader, days: DayRange, by: By, currency: str) -> list[SalesRow]:
    """Return sales; by day, each has a row in the store's ``currency``, others if sold."""
    totals: _Totals = defaultdict(lambda: [0, 0, 0, 0])
    if by == "day":
        totals |= {(day, None, currency): [0, 0, 0, 0] for day in days.days}
    slices = TimeSlices()
    await slices.begin()
    for run in stretches(days) if by == "day" else _weeks(days):
        for place, (when, what) in enumerate(_COUNTED):
            for group, of, count, millions, rest in await store.read(_select(by, run, when, what)):
                day = run.first + timedelta(days=group) if by == "day" else None
                sums = totals[day, None if day else group, of or currency]
                sums[2 * place] += count
                sums[2 * place + 1] += (millions or 0) * _PART + (rest or 0)
                await slices.rest()
        await slices.rest()
    return _rows(totals, currency)


def _weeks(days: DayRange) -> Iterator[DayRun]:
    """Without days there is less to add up the more weeks a statement reads."""
    for start in range(days.start, days.end, _FOUR_WEEKS):
        yield DayRun(days.first, start, min(start + _FOUR_WEEKS, days.end))


def _select(by: By, run: DayRun, when: str, what: str) -> Statement:
    group, values, name = "category_id", [run.start, run.end], "select_sales_by_category"
    if by == "day":
        # A day that is not of 24 hours stands alone.
        group = f"CASE WHEN CAST(?3 AS BIGINT) > 1 THEN ({when} - ?1) / 86400000 ELSE 0 END"
        values.append((run.end - run.start) // DAY)
        name = "select_sales_by_day"
    return Statement(
        f"SELECT {group} AS sold, currency, count(*),"  # noqa: S608 - only names
        f" CAST(sum({what} / {_PART}) AS BIGINT), CAST(sum({what} % {_PART}) AS BIGINT)"
        f" FROM orders WHERE {when} IS NOT NULL"
        f" AND {when} >= /*sqlite*/ ?1 /*end*/ /*pg {opaque_parameter(1)} */"
        f" AND {when} < /*sqlite*/ ?2 /*end*/ /*pg {opaque_parameter(2)} */"
        " GROUP BY sold, currency",
        values,
        name=name,
    )


def _rows(totals: _Totals, currency: str) -> list[SalesRow]:
    """Return the rows in order. The categories beyond the first ones share a row."""
    categories = sorted({category_id for _, category_id, _ in totals if category_id is not None})
    beyond = {*categories[MAX_CATEGORIES:]}
    for _, category_id, of in [key for key in totals if key[1] in beyond]:
        sums = totals.pop((None, category_id, of))
        totals[None, None, of] = [*map(add, totals[None, None, of], sums)]

    def order(total: tuple[_Key, list[int]]) -> tuple[date, bool, int, bool, str]:
        (day, category_id, of), _ = total
        return day or date.min, category_id is None, category_id or 0, of != currency, of

    return [
        SalesRow(
            *(orders, amount, returns, refunded, of, day or UNSET),
            UNSET if category_id is None else category_id,
        )
        for (day, category_id, of), (orders, amount, returns, refunded) in sorted(
            totals.items(), key=order
        )
    ]
