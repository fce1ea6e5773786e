"""The page of sales: a range by day or month and by category, and the same as CSV."""

from collections.abc import Iterable, Iterator, Mapping
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
from petstore.errors import InvalidParameter
from petstore.http.messages import Response
from petstore.sales.model import Sales, SalesRow, totals_of

_ONE_DAY = timedelta(days=1)
# A longer range is shown by month: no one tells so many bars apart, and the page would be heavy.
_MOST_DAYS_SHOWN = 92
_COLUMNS = ("orders", "amount", "returns", "refunded", "currency")
_FORM = FieldSet(Field("from", "From", type="date"), Field("to", "To", type="date"))


class _CategoryRow(NamedTuple):
    """Sales of a category in a currency, before too, and their share of the amount in percent."""

    name: str
    sold: SalesRow
    before: SalesRow
    share: float


async def _show(request: PageRequest) -> Response:
    typed, shown = _typed(request), _FORM.typed(request.form)
    report = None if request.error else await _report(request, typed)
    if report:
        shown = {"from": str(report["days"].first), "to": str(report["days"].last)}
    return request.page(
        "sales.html",
        form=ShownForm(_FORM.fields, shown, shown, problem=_FORM.problem(request.error)),
        given=typed,
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
    columns = ("categoryId", by) if by == "category" else (by,)
    write = csv_writer(file, (*columns, *_COLUMNS), spreadsheet_safe=True, delimiter=delimiter)
    for row in (
        _by_month(sales.rows, request.services.settings.currency) if by == "month" else sales.rows
    ):
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
    return {name: text for name, text in _FORM.typed(request.form).items() if text}


async def _sales(request: PageRequest, typed: Texts, *, by: str) -> Sales:
    query = {**typed, "by": by}
    found: Sales = (await request.execute("getSales", query=query)).value
    return found


async def _report(request: PageRequest, typed: Texts) -> dict[str, Any]:
    currency = request.services.settings.currency
    days = await _sales(request, typed, by="day")
    categories = (await _sales(request, typed, by="category")).rows
    before = await _before(request, days)
    rows_before = before.rows if before else []
    names = await _names(request, [*categories, *rows_before])
    totals = totals_of(days.rows, currency)
    count = (days.last - days.first).days + 1
    of = "Month" if count > _MOST_DAYS_SHOWN else "Day"
    periods = [
        (_label(_day_of(row), of, request.today), row)
        for row in (_by_month(days.rows, currency) if of == "Month" else days.rows)
    ]
    return {
        "days": days,
        "count": count,
        "of": of,
        "periods": periods,
        "totals": totals,
        "before": before,
        "totals_before": totals_of(rows_before, currency),
        "charts": _charts(periods, of, currency),
        "categories": [
            (each, _by_category(categories, rows_before, each, names))
            for each in totals
            if each.orders or each.returns
        ],
    }


async def _before(request: PageRequest, days: Sales) -> Sales | None:
    """Return what was sold on as many days before."""
    last = days.first - _ONE_DAY
    wanted = {"from": str(last - (days.last - days.first)), "to": str(last)}
    try:
        return await _sales(request, wanted, by="category")
    except InvalidParameter:  # before all days that there are
        return None


def _by_month(rows: Iterable[SalesRow], currency: str) -> Iterator[SalesRow]:
    """Yield the totals of rows of days by month; ``day`` is the first of the month."""
    for month, of_month in groupby(rows, lambda row: _day_of(row).replace(day=1)):
        for total in totals_of(of_month, currency):
            yield replace(total, day=month)


def _label(day: date, of: str, today: date) -> str:
    if of == "Month":
        is_now, text = day == today.replace(day=1), f"{day:%b %Y}"
    else:
        is_now, text = day == today, chart_day(day)
    return f"{text} so far" if is_now else text


def _day_of(row: SalesRow) -> date:
    assert row.day is not UNSET  # noqa: S101 - the row is by day
    return row.day


def _charts(periods: Iterable[tuple[str, SalesRow]], of: str, currency: str) -> list[Bars]:
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
