"""Sales in the database, read some weeks at a time along the indexes."""

from collections.abc import Sequence
from datetime import date
from operator import add
from typing import Any, TypeAlias

from msgspec import UNSET

from petstore.clock import DAY
from petstore.databases.contract import Reader, Statement
from petstore.databases.pages import opaque_parameter
from petstore.sales.model import MAX_CATEGORIES, By, DayRange, SalesRow
from petstore.time_slices import TimeSlices

# A sum of amounts may exceed an int64, but neither of these parts does.
_PART = 1_000_000
_WEEK, _FOUR_WEEKS = 7, 28 * DAY  # what people ask for most is a week
_COUNTED = (("delivered_at", "amount"), ("returned_at", "refund"))

_Key: TypeAlias = tuple[date | None, int | None, str]
_Totals: TypeAlias = dict[_Key, tuple[int, int, int, int]]
"""How many orders and returns there are, with their sums, by day, category and currency."""


async def get_sales(store: Reader, days: DayRange, by: By, currency: str) -> list[SalesRow]:
    """Return sales; by day, each has a row in the store's ``currency``, others if sold."""
    if by == "category":
        return _rows(await _by_category(store, days, currency), currency)
    totals: _Totals = {(day, None, currency): (0, 0, 0, 0) for day in days.days}
    slices = TimeSlices()
    await slices.begin()
    every_day, bounds = days.days, days.bounds
    for first in range(0, len(every_day), _WEEK):
        week = bounds[first : first + _WEEK + 1]
        week += week[-1:] * (_WEEK + 1 - len(week))
        for is_return, (when, what) in enumerate(_COUNTED):
            # Days are as long as the clocks say.
            day = " ".join(f"WHEN {when} < ?{n + 2} THEN {n}" for n in range(_WEEK))
            select = Statement(
                f"SELECT CASE {day} END AS day, {_counted(when, what, _WEEK + 1)}"
                " GROUP BY day, currency",
                tuple(week),
                name="select_sales_by_day",
            )
            for index, *numbers in await store.read(select):
                _add(totals, (every_day[first + index], None), numbers, currency, is_return)
        await slices.rest()
    return _rows(totals, currency)


async def _by_category(store: Reader, days: DayRange, currency: str) -> _Totals:
    totals: _Totals = {}
    slices = TimeSlices()
    await slices.begin()
    # Without days there is less to add up the more weeks a statement reads.
    first, *_, end = days.bounds
    for start in range(first, end, _FOUR_WEEKS):
        for is_return, (when, what) in enumerate(_COUNTED):
            select = Statement(
                f"SELECT category_id, {_counted(when, what, 2)} GROUP BY category_id, currency",
                (start, min(start + _FOUR_WEEKS, end)),
                name="select_sales_by_category",
            )
            for category_id, *numbers in await store.read(select):
                _add(totals, (None, category_id), numbers, currency, is_return)
                await slices.rest()
        await slices.rest()
    return _with_first_categories(totals)


def _with_first_categories(totals: _Totals) -> _Totals:
    known = sorted({category_id for _, category_id, _ in totals if category_id is not None})
    shown = {*known[:MAX_CATEGORIES]}
    kept: _Totals = {}
    for (_, category_id, of), numbers in totals.items():
        key = None, category_id if category_id in shown else None, of
        orders, amount, returns, refunded = map(add, kept.get(key, (0, 0, 0, 0)), numbers)
        kept[key] = orders, amount, returns, refunded
    return kept


def _counted(when: str, what: str, end: int) -> str:
    """Return what is selected of the time from parameter 1 to the one with the number ``end``."""
    return (
        "currency, count(*),"
        f" CAST(sum({what} / {_PART}) AS BIGINT), CAST(sum({what} % {_PART}) AS BIGINT)"
        f" FROM orders WHERE {when} IS NOT NULL"
        f" AND {when} >= /*sqlite*/ ?1 /*end*/ /*pg {opaque_parameter(1)} */"
        f" AND {when} < /*sqlite*/ ?{end} /*end*/ /*pg {opaque_parameter(end)} */"
    )


def _add(
    totals: _Totals,
    place: tuple[date | None, int | None],
    numbers: Sequence[Any],
    currency: str,
    is_return: int,
) -> None:
    """Add what a row says of the orders in its currency: how many, and their sum in parts."""
    of, count, millions, rest = numbers
    key = *place, of or currency
    orders, amount, returns, refunded = totals.get(key, (0, 0, 0, 0))
    total = (millions or 0) * _PART + (rest or 0)
    if is_return:
        totals[key] = orders, amount, returns + count, refunded + total
    else:
        totals[key] = orders + count, amount + total, returns, refunded


def _rows(totals: _Totals, currency: str) -> list[SalesRow]:
    def order(key: _Key) -> tuple[date, bool, int, bool, str]:
        day, category_id, of = key
        return day or date.min, category_id is None, category_id or 0, of != currency, of

    return [
        SalesRow(
            *totals[day, category_id, of],
            of,
            UNSET if day is None else day,
            UNSET if category_id is None else category_id,
        )
        for day, category_id, of in sorted(totals, key=order)
    ]
