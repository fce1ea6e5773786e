"""The page of sales: a range by day or month and by category, and the same as CSV."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from petstore.console.downloads import SEPARATOR, CsvDownload, amount_cell, delimiter_of
from petstore.console.forms import Field, FieldSet, ShownForm, Texts
from petstore.console.numbers import Bars, chart_day
from petstore.console.page import ConsolePage, PageRequest
from petstore.domain.csv_files import csv_writer
from petstore.errors import InvalidParameter, PetstoreError
from petstore.http.messages import Response
from petstore.sales.model import Sales, SalesRow, totals_of

_ONE_DAY = timedelta(days=1)
_DEFAULT_DAYS = 7
# A longer range is shown by month: no one tells so many bars apart, and the page would be heavy.
_MOST_DAYS_SHOWN = 92
_COLUMNS: Mapping[str, Sequence[str]] = {
    "day": ("day", "orders", "amount", "returns", "refunded", "currency"),
    "month": ("month", "orders", "amount", "returns", "refunded", "currency"),
    "category": ("categoryId", "category", "orders", "amount", "returns", "refunded", "currency"),
}
_FORM = FieldSet(Field("from", "From", type="date"), Field("to", "To", type="date"))


class _Before(NamedTuple):
    """What was sold on the days that a range is compared with, and what these are to it."""

    name: str
    first: date
    last: date
    totals: Sequence[SalesRow]
    categories: Sequence[SalesRow]


class _CategoryRow(NamedTuple):
    """Sales of a category in a currency, before too, and their share of the amount in percent."""

    name: str
    sold: SalesRow
    before: SalesRow
    share: float


class _Period(NamedTuple):
    label: str
    sold: SalesRow


async def _show(request: PageRequest, error: PetstoreError | None = None) -> Response:
    typed = _typed(request)
    report = None if error else await _report(request, typed)
    return request.page(
        "sales.html",
        error=error,
        form=ShownForm(_FORM.fields, typed, typed, problem=_FORM.problem(error)),
        given={name: text for name, text in typed.items() if name in request.form.fields},
        ranges=_ranges(request),
        separators=SEPARATOR.options,
        report=report,
    )


async def _download(request: PageRequest) -> Response:
    by = request.form.text("by") or "day"
    sales = await _sales(request, _typed(request), by="day" if by == "month" else by)
    names = await _names(request, sales.rows)
    file = CsvDownload()
    delimiter = delimiter_of(request.form)
    write = csv_writer(file, _COLUMNS[by], spreadsheet_safe=True, delimiter=delimiter)
    for row in _by_month(sales.rows) if by == "month" else sales.rows:
        write(
            {
                "day": row.day,
                "month": str(row.day)[:7],
                "categoryId": "" if row.category_id is UNSET else row.category_id,
                "category": _name_of(row, names),
                "orders": row.orders,
                "amount": amount_cell(row.amount, row.currency, delimiter),
                "returns": row.returns,
                "refunded": amount_cell(row.refunded, row.currency, delimiter),
                "currency": row.currency,
            }
        )
    return file.response(f"sales-by-{by}-{sales.first}-to-{sales.last}.csv")


def _typed(request: PageRequest) -> dict[str, str]:
    today = request.today
    given = {name: text for name, text in _FORM.typed(request.form).items() if text}
    return {"from": str(today - (_DEFAULT_DAYS - 1) * _ONE_DAY), "to": str(today)} | given


async def _sales(request: PageRequest, typed: Texts, *, by: str) -> Sales:
    query = {**typed, "by": by}
    found: Sales = (await request.execute("getSales", query=query)).value
    return found


async def _report(request: PageRequest, typed: Texts) -> dict[str, Any]:
    currency = request.services.settings.currency
    days = await _sales(request, typed, by="day")
    categories = (await _sales(request, typed, by="category")).rows
    today = request.today
    before = await _before(request, days)
    categories_before = before.categories if before else ()
    names = await _names(request, [*categories, *categories_before])
    totals = totals_of(days.rows, currency)
    count = (days.last - days.first).days + 1
    of = "Month" if count > _MOST_DAYS_SHOWN else "Day"
    periods = _periods(_by_month(days.rows) if of == "Month" else days.rows, of, today)
    return {
        "days": days,
        "count": count,
        "of": of,
        "periods": periods,
        "today": today,
        "currency": currency,
        "totals": totals,
        "before": before,
        "charts": _charts(periods, of, currency),
        "categories": [
            (each, _by_category(categories, categories_before, each, names))
            for each in totals
            if each.orders or each.returns
        ],
    }


async def _before(request: PageRequest, days: Sales) -> _Before | None:
    last, count = days.first - _ONE_DAY, (days.last - days.first).days + 1
    first = last - (days.last - days.first)
    name = "The day before" if count == 1 else f"The {count} days before"
    try:
        rows = (await _sales(request, {"from": str(first), "to": str(last)}, by="category")).rows
    except InvalidParameter:
        return None
    return _Before(name, first, last, totals_of(rows, request.services.settings.currency), rows)


def _by_month(rows: Iterable[SalesRow]) -> Iterator[SalesRow]:
    """Yield the sums of rows of days by month and currency; ``day`` is the first of the month."""
    for month, of_month in groupby(rows, lambda row: _day_of(row).replace(day=1)):
        by_currency: dict[str, list[SalesRow]] = {}
        for row in of_month:
            by_currency.setdefault(row.currency, []).append(row)
        for each in by_currency.values():
            (total,) = totals_of(each, each[0].currency)
            yield replace(total, day=month)


def _periods(rows: Iterable[SalesRow], of: str, today: date) -> list[_Period]:

    def label(day: date) -> str:
        if of == "Month":
            is_now, text = day == today.replace(day=1), f"{day:%b %Y}"
        else:
            is_now, text = day == today, chart_day(day)
        return f"{text} so far" if is_now else text

    return [_Period(label(_day_of(row)), row) for row in rows]


def _day_of(row: SalesRow) -> date:
    assert row.day is not UNSET  # noqa: S101 - the row is by day
    return row.day


def _charts(periods: Iterable[_Period], of: str, currency: str) -> list[Bars]:
    amounts: dict[str, int] = {}
    orders: dict[str, int] = {}
    for label, row in periods:
        orders[label] = orders.get(label, 0) + row.orders
        amounts[label] = amounts.get(label, 0) + (row.amount if row.currency == currency else 0)
    by = f"by {of.lower()}"
    return [
        Bars(f"Amount {by}", "", of, [*amounts.items()], currency),
        Bars(f"Orders {by}", "orders", of, [*orders.items()]),
    ]


def _by_category(
    rows: Iterable[SalesRow], before: Iterable[SalesRow], total: SalesRow, names: Mapping[int, str]
) -> list[_CategoryRow]:
    """Return rows in the currency of a total, the largest first; some sold only before."""
    sold = {row.category_id: row for row in rows if row.currency == total.currency}
    earlier = {row.category_id: row for row in before if row.currency == total.currency}

    def shown(category_id: int | UnsetType) -> _CategoryRow:
        none = SalesRow(0, 0, 0, 0, total.currency, category_id=category_id)
        row = sold.get(category_id, none)
        part, whole = (
            (row.amount, total.amount) if total.amount else (row.orders, total.orders or 1)
        )
        share = round(100 * part / whole, 2)
        return _CategoryRow(_name_of(row, names), row, earlier.get(category_id, none), share)

    shown_rows = [shown(category_id) for category_id in {**sold, **earlier}]
    return sorted(shown_rows, key=lambda row: (-row.sold.amount, -row.sold.orders))


async def _names(request: PageRequest, rows: Iterable[SalesRow]) -> dict[int, str]:
    return await request.category_names(
        {row.category_id for row in rows if row.category_id is not UNSET}
    )


def _name_of(row: SalesRow, names: Mapping[int, str]) -> str:
    if row.category_id is UNSET:
        return "other or unknown"
    return names.get(row.category_id, f"category {row.category_id}")


def _ranges(request: PageRequest) -> list[tuple[str, date, date]]:
    today = request.today
    monday = today - today.weekday() * _ONE_DAY
    month, year = today.replace(day=1), today.replace(month=1, day=1)
    last_month = month - _ONE_DAY
    return [
        ("Today", today, today),
        ("Yesterday", today - _ONE_DAY, today - _ONE_DAY),
        ("This week", monday, today),
        ("Last week", monday - 7 * _ONE_DAY, monday - _ONE_DAY),
        ("Last 7 days", today - 6 * _ONE_DAY, today),
        ("Last 30 days", today - 29 * _ONE_DAY, today),
        ("This month", month, today),
        ("Last month", last_month.replace(day=1), last_month),
        ("This year", year, today),
    ]


PAGES = (
    ConsolePage("GET", "/sales", _show, "getSales", _show),
    ConsolePage("GET", "/sales/sales.csv", _download, "getSales", _show, has_file=True),
)
