"""The page that exports orders, and the file that it leads to."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from msgspec import UNSET, to_builtins

from petstore.console.downloads import SEPARATOR, CsvDownload, amount_cell, dated, delimiter_of
from petstore.console.fields import FieldSet, optional
from petstore.console.page import ConsolePage, PageRequest
from petstore.domain.csv_files import Delimiter, csv_writer
from petstore.errors import PetstoreError
from petstore.http.messages import Response
from petstore.interface.messages import require_admitted
from petstore.limits.admission import KEY
from petstore.orders.form import STATUS_FILTER
from petstore.orders.model import Order
from petstore.pets.model import Pet
from petstore.time_slices import TimeSlices

MOST = 50_000
"""How many orders a file has at most: it is on the disk until it is sent."""

ROWS_A_REQUEST = 100
"""How many rows cost a request of a key, as many as a list has at most."""

_EMPTY = "No order matches, so there is nothing to export."
_COLUMNS = (
    *("id", "status", "petId", "petName", "buyer", "amount", "currency", "note"),
    *("placedAt", "shipDate", "approvedAt", "deliveredAt", "cancelledAt", "cancelReason"),
)
_FORM = FieldSet(STATUS_FILTER, SEPARATOR)


async def _page(
    visit: PageRequest, error: PetstoreError | None = None, *, problem: str = ""
) -> Response:
    form = _FORM.new(visit.form, error)
    return visit.page("orders_export.html", error=error, form=form, most=MOST, told=problem)


async def _download(visit: PageRequest) -> Response:
    delimiter, slices = delimiter_of(visit.form), TimeSlices()
    query: dict[str, Any] = {"status": optional(STATUS_FILTER.typed(visit.form)), "sort": "-id"}
    query |= {"limit": ROWS_A_REQUEST, "cursor": None}
    with ExitStack() as opened:
        file = opened.enter_context(CsvDownload())
        write = csv_writer(file, _COLUMNS, spreadsheet_safe=True, delimiter=delimiter)
        for _ in range(0, MOST, ROWS_A_REQUEST):
            found = await visit.execute("listOrders", query=query)
            if not found.value:
                return await _page(visit, problem=_EMPTY)
            if visit.is_head:
                break
            # As the same pages would cost over the interface.
            require_admitted(await visit.services.limiter.charge(visit.caller, 1), KEY)
            pets = await visit.pets_of({order.pet_id for order in found.value})
            for order in found.value:
                write(_row(order, pets, delimiter=delimiter))
                await slices.rest()
            query["cursor"] = found.next
            if not found.next:
                break
        opened.pop_all()  # the server closes the file
    return file.response(dated("orders", visit.services.clock()))


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
