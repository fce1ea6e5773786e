"""The page of exports, and the files that it leads to. A file has a part of the animals."""

import io
from typing import Any, NamedTuple
from urllib.parse import urlencode

from petstore.api.parameters import decode_query
from petstore.api.pets import ListPetsQuery
from petstore.console.downloads import csv_download, dated
from petstore.console.forms import problem_of
from petstore.console.page import Page, Result, Visit
from petstore.domain.pets import PetFilter
from petstore.errors import InvalidParameter
from petstore.http.messages import Response
from petstore.store.pet_files import Part, export_pets
from petstore.store.pets import next_pets_after

PART = 50_000
"""How many animals a file has at most: a response is in memory until it is sent."""

_MAX_ID = 2**63 - 1
_FOR_SPREADSHEETS = "spreadsheet"


class _Wanted(NamedTuple):
    """The fields of the form, and of the addresses of files.

    ``after`` is the last id of the part before, 0 for the first one.
    """

    status: str
    categoryId: str  # noqa: N815 - the interface's own name
    purpose: str
    after: int
    part: int

    @property
    def filters(self) -> dict[str, Any]:
        """The filters as ``listPets`` takes them."""
        return {"status": self.status or None, "categoryId": self.categoryId or None}

    @property
    def query(self) -> str:
        """The query of an address."""
        return urlencode(self._asdict())


async def _show(visit: Visit) -> Response:
    wanted = _wanted(visit)
    problem, first, next_after = None, Result([], "", ""), None
    try:
        first = await _first(visit, wanted)
        store = visit.services.store
        next_after = await next_pets_after(store, _filter(wanted), wanted.after, PART)
    except InvalidParameter as error:
        problem = problem_of(error)
    return visit.page(
        "export.html",
        400 if problem else 200,
        wanted=wanted,
        max_pets=PART,
        is_empty=not first.value,
        following=next_after and wanted._replace(after=next_after, part=wanted.part + 1),
        problem=problem,
    )


async def _download(visit: Visit) -> Response:
    wanted = _wanted(visit)
    await _first(visit, wanted)
    reader = await visit.services.readers.for_key(visit.key.id)
    file = io.StringIO(newline="")
    await export_pets(
        reader,
        file,
        "csv",
        lambda _: None,
        part=Part(_filter(wanted), wanted.after, PART),
        spreadsheet_safe=wanted.purpose == _FOR_SPREADSHEETS,
    )
    name = "animals" if wanted.part == 1 else f"animals-part-{wanted.part}"
    return csv_download(dated(name, visit.services.clock()), file.getvalue())


async def _first(visit: Visit, wanted: _Wanted) -> Result:
    """Return the first animal of a list with these filters, which checks them.

    Raises:
        InvalidParameter: a filter has an invalid value.
    """
    return await visit.call("listPets", query=wanted.filters | {"limit": 1})


def _filter(wanted: _Wanted) -> PetFilter:
    text = urlencode({name: value for name, value in wanted.filters.items() if value})
    values = decode_query(text.encode("ascii"), ListPetsQuery).values
    return PetFilter(values.status, values.categoryId)


def _wanted(visit: Visit) -> _Wanted:
    form = visit.form
    return _Wanted(
        form.text("status"),
        form.text("categoryId"),
        form.text("purpose") or _FOR_SPREADSHEETS,
        _number(form.text("after"), 0),
        _number(form.text("part"), 1),
    )


def _number(text: str, default: int) -> int:
    """Return a number that a link of the page has, or the default if it is not one."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_ID))
    return min(int(text), _MAX_ID) if is_number else default


PAGES = (
    Page("GET", "/export", _show, needs="listPets"),
    Page("GET", "/export/pets.csv", _download, needs="listPets"),
)
