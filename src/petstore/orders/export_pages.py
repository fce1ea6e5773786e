"""The page that exports orders, and the file that it leads to."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from msgspec import UNSET, to_builtins

from petstore.console.allowance import ROWS_A_REQUEST, allowance_of, charge, requests_for
from petstore.console.downloads import SEPARATOR, CsvDownload, amount_cell, dated, delimiter_of
from petstore.console.fields import FieldSet, optional
from petstore.console.page import ConsolePage, PageRequest
from petstore.databases.contract import Reader
from petstore.errors import PetstoreError
from petstore.http.messages import Response
from petstore.orders.form import STATUS_FILTER
from petstore.orders.model import Order, OrderFilter
from petstore.orders.store import count_orders, list_orders
from petstore.pets.exports import Delimiter, csv_writer
from petstore.pets.store import names_of_pets
from petstore.time_slices import TimeSlices

MOST = 50_000
"""How many orders a file has at most: it is on the disk until it is sent."""

_AT_ONCE = 500
_COLUMNS = (
    *("id", "status", "petId", "petName", "buyer", "amount", "currency", "note"),
    *("placedAt", "shipDate", "approvedAt", "deliveredAt", "cancelledAt", "cancelReason"),
)
_FORM = FieldSet(
    STATUS_FILTER,
    SEPARATOR,
)


async def _page(
    visit: PageRequest,
    error: PetstoreError | None = None,
    *,
    is_empty: bool = False,
    short_of: int = 0,
) -> Response:
    return visit.page(
        "orders_export.html",
        error=error,
        form=_FORM.new(visit.form, error),
        most=MOST,
        is_empty=is_empty,
        short_of=short_of,
        allowance=await allowance_of(visit),
        rows_a_request=ROWS_A_REQUEST,
    )


async def _download(visit: PageRequest) -> Response:
    status = optional(STATUS_FILTER.typed(visit.form))
    await visit.execute("listOrders", query={"status": status, "limit": 1})  # which checks it
    wanted = OrderFilter(status or UNSET)  # type: ignore[arg-type] # as was checked
    store = visit.services.store
    count = await count_orders(store, wanted, MOST)
    if not count:
        return await _page(visit, is_empty=True)
    if not await charge(visit, requests_for(count)):
        return await _page(visit, short_of=requests_for(count))
    file = CsvDownload()
    if not visit.is_head:
        delimiter = delimiter_of(visit.form)
        write = csv_writer(file, _COLUMNS, spreadsheet_safe=True, delimiter=delimiter)
        row_of = partial(_row, delimiter=delimiter)
        await _write(store, wanted, write, row_of, names=visit.may("listPets"))
    return file.response(dated("orders", visit.services.clock()))


async def _write(
    reader: Reader, wanted: OrderFilter, write: Any, row_of: Any, *, names: bool
) -> None:
    """Write the newest orders, a page at a time, and let others have the event loop in between."""
    slices, after, left = TimeSlices(), None, MOST
    while left:
        page = await list_orders(reader, wanted, after, min(left, _AT_ONCE), newest_first=True)
        ids = {order.pet_id for order in page.items} if names else set()
        animals = await names_of_pets(reader, ids)
        for order in page.items:
            write(row_of(order, animals))
            await slices.rest()
        after, left = page.next_after, left - len(page.items)
        if after is None:
            return


def _row(order: Order, animals: Mapping[int, str], *, delimiter: Delimiter) -> dict[str, Any]:
    row: dict[str, Any] = to_builtins(order)
    if order.amount is not UNSET and order.currency is not UNSET:
        row["amount"] = amount_cell(order.amount, order.currency, delimiter)
    return row | {"petName": animals.get(order.pet_id, "")}


PAGES = (
    ConsolePage("GET", "/orders/export", _page, "listOrders"),
    ConsolePage("GET", "/orders/export/orders.csv", _download, "listOrders", _page, has_file=True),
)
