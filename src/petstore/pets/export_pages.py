"""The file of the pets that a list shows."""

from typing import Any

from msgspec import to_builtins

from petstore.console.downloads import CsvDownload, dated, delimiter_of
from petstore.console.page import ConsolePage, PageRequest
from petstore.domain.csv_files import csv_writer
from petstore.http.messages import Response
from petstore.interface.rate_limit_headers import require_admitted
from petstore.limits.admission import KEY
from petstore.pets.pages import list_query
from petstore.time_slices import TimeSlices

_PAGE = 100
_COLUMNS = ("id", "name", "categoryId", "category", "status")


async def _download(visit: PageRequest) -> Response:
    query: dict[str, Any] = await list_query(visit) | {"limit": _PAGE}
    file, slices = CsvDownload(), TimeSlices()
    delimiter = delimiter_of(visit.form)
    write = csv_writer(file, _COLUMNS, spreadsheet_safe=True, delimiter=delimiter)
    while not visit.is_head:
        # As the same pages would cost over the interface.
        require_admitted(await visit.services.limiter.charge(visit.caller, 1), KEY)
        found = await visit.execute("listPets", query=query)
        names = await visit.category_names({pet.category_id for pet in found.value})
        for pet in found.value:
            write(to_builtins(pet) | {"category": names.get(pet.category_id, "")})
            await slices.rest()
        if not found.next:
            break
        query["cursor"] = found.next
    return file.response(dated("pets", visit.services.clock()))


PAGES = (ConsolePage("GET", "/pets/export.csv", _download, "listPets", has_file=True),)
