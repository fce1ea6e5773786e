"""The page that exports orders, and the file that it leads to."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from msgspec import UNSET, to_builtins

from petstore.console.allowance import (
    ROWS_A_REQUEST,
    affordable,
    allowance_of,
    charge,
    requests_for,
)
from petstore.console.downloads import SEPARATOR, CsvDownload, amount_cell, dated, delimiter_of
from petstore.console.fields import FieldSet, optional
from petstore.console.page import ConsolePage, PageRequest
from petstore.domain.csv_files import Delimiter, csv_writer
from petstore.errors import PetstoreError
from petstore.http.messages import Response
from petstore.orders.form import STATUS_FILTER
from petstore.orders.model import Order
from petstore.pets.model import Pet
from petstore.time_slices import TimeSlices

MOST = 50_000
"""How many orders a file has at most: it is on the disk until it is sent."""

_EMPTY = "No order matches, so there is nothing to export."
_TOO_DEAR = "This file costs more requests than your key has left. Nothing was charged."
_COLUMNS = (
    *("id", "status", "petId", "petName", "buyer", "amount", "currency", "note"),
    *("placedAt", "shipDate", "approvedAt", "deliveredAt", "cancelledAt", "cancelReason"),
)
_FORM = FieldSet(
    STATUS_FILTER,
    SEPARATOR,
)


async def _page(
    visit: PageRequest, error: PetstoreError | None = None, *, problem: str = ""
) -> Response:
    return visit.page(
        "orders_export.html",
        error=error,
        form=_FORM.new(visit.form, error),
        most=MOST,
        told=problem,
        allowance=await allowance_of(visit),
        rows_a_request=ROWS_A_REQUEST,
    )


async def _download(visit: PageRequest) -> Response:
    with ExitStack() as opened:
        file = opened.enter_context(CsvDownload())
        if problem := await _write(visit, file):
            return await _page(visit, problem=problem)
        opened.pop_all()  # the server closes the file
    return file.response(dated("orders", visit.services.clock()))


async def _write(visit: PageRequest, file: CsvDownload) -> str:
    """Write the newest orders, and charge them to the key; return why there is no file."""
    left = await affordable(visit, requests_for(MOST))
    delimiter = delimiter_of(visit.form)
    write = csv_writer(file, _COLUMNS, spreadsheet_safe=True, delimiter=delimiter)
    slices, requests = TimeSlices(), 0
    query: dict[str, Any] = {"status": optional(STATUS_FILTER.typed(visit.form)), "sort": "-id"}
    query |= {"limit": ROWS_A_REQUEST, "cursor": None}
    while requests < requests_for(MOST):
        found = await visit.execute("listOrders", query=query)
        if not found.value:
            return _EMPTY
        requests += 1
        if requests > left:
            return _TOO_DEAR
        pets = await visit.pets_of({order.pet_id for order in found.value})
        for order in found.value:
            write(_row(order, pets, delimiter=delimiter))
            await slices.rest()
        query["cursor"] = found.next
        if not found.next or visit.is_head:
            break
    return "" if await charge(visit, requests) else _TOO_DEAR


def _row(order: Order, pets: Mapping[int, Pet], *, delimiter: Delimiter) -> dict[str, Any]:
    row: dict[str, Any] = to_builtins(order)
    if order.amount is not UNSET and order.currency is not UNSET:
        row["amount"] = amount_cell(order.amount, order.currency, delimiter)
    pet = pets.get(order.pet_id)
    return row | {"petName": "" if pet is None else pet.name}


PAGES = (
    ConsolePage("GET", "/orders/export", _page, "listOrders"),
    ConsolePage("GET", "/orders/export/orders.csv", _download, "listOrders", _page, has_file=True),
)
