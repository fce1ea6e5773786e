"""The page of exports, and the files that it leads to. A large export comes in parts."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import urlencode

from petstore.api.parameters import decode_query
from petstore.api.pets import ListPetsQuery
from petstore.console.allowance import ROWS_A_REQUEST, allowance_of, charge, requests_for
from petstore.console.category_fields import category_id_of, suggested_names
from petstore.console.downloads import DELIMITERS, CsvDownload, dated
from petstore.console.forms import problem_of
from petstore.console.page import Page, Visit
from petstore.domain.pets import PetFilter
from petstore.errors import InvalidParameter, PetstoreError, UnknownCategory
from petstore.http.messages import Response
from petstore.store.pet_files import Part, export_pets
from petstore.store.pets import count_pets_after, next_pets_after

PART = 50_000
"""How many animals a file has at most: it is on the disk until it is sent."""

_LABELS = {"status": "Status", "categoryId": "Category"}
_REFUSED = (InvalidParameter, UnknownCategory)
_FOR_SPREADSHEETS = "spreadsheet"
_MAX_ID = 2**63 - 1


class _Wanted(NamedTuple):
    """The fields of the form, and of the addresses of parts.

    ``part`` is 0 if no part is asked for, and ``after`` the last id of the part before.
    """

    status: str
    categoryId: str  # noqa: N815 - the interface's own name
    purpose: str
    separator: str
    part: int = 0
    after: int = 0

    @property
    def query(self) -> str:
        """The query of an address."""
        return urlencode(self._asdict())


async def _show(visit: Visit) -> Response:
    wanted = _wanted(visit)
    if not wanted.part:
        return await _page(visit, wanted)
    try:
        filters = _filter(await _query(visit, wanted))
    except _REFUSED as error:
        return await _page(visit, wanted, error)
    next_after = await _next_after(visit, filters, wanted.after)
    following = next_after and wanted._replace(part=wanted.part + 1, after=next_after)
    return await _page(visit, wanted, following=following)


async def _download(visit: Visit) -> Response:
    wanted = _wanted(visit)
    try:
        query = await _query(visit, wanted)
        found = await visit.call("listPets", query=query | {"limit": 1})
    except _REFUSED as error:
        return await _page(visit, wanted, error)
    filters = _filter(query)
    if not found.value:
        return await _page(visit, wanted, is_empty=True)
    if not wanted.part and await _next_after(visit, filters, wanted.after):
        return await visit.redirect(f"/export?{wanted._replace(part=1).query}")
    reader = await visit.services.readers.for_key(visit.key.id)
    count = await count_pets_after(reader, filters, wanted.after, PART)
    cost = requests_for(count)
    if not await charge(visit, cost):
        return await _page(visit, wanted, short_of=cost)
    file = CsvDownload()
    if not visit.is_head:
        await export_pets(
            reader,
            file,
            "csv",
            lambda _: None,
            part=Part(filters, wanted.after, PART),
            spreadsheet_safe=wanted.purpose == _FOR_SPREADSHEETS,
            delimiter=DELIMITERS.get(wanted.separator, ","),
        )
    name = f"animals-part-{wanted.part}" if wanted.part else "animals"
    return file.response(dated(name, visit.services.clock()))


async def _page(
    visit: Visit, wanted: _Wanted, error: PetstoreError | None = None, **context: Any
) -> Response:
    return visit.page(
        "export.html",
        200 if error is None else error.status,
        **{
            "wanted": wanted,
            "max_pets": PART,
            "is_empty": False,
            "short_of": 0,
            "allowance": await allowance_of(visit),
            "rows_a_request": ROWS_A_REQUEST,
            "following": None,
            "suggested_categories": await suggested_names(visit),
            "problem": None if error is None else problem_of(error, _LABELS),
            **context,
        },
    )


async def _next_after(visit: Visit, filters: PetFilter, after: int) -> int | None:
    """Return the last id of a part, ``None`` if no animals follow it."""
    reader = await visit.services.readers.for_key(visit.key.id)
    return await next_pets_after(reader, filters, after, PART)


async def _query(visit: Visit, wanted: _Wanted) -> dict[str, Any]:
    """Return the filters of the form as ``listPets`` takes them.

    Raises:
        UnknownCategory: no category has the name.
    """
    query: dict[str, Any] = {"status": wanted.status} if wanted.status else {}
    if wanted.categoryId:
        query["categoryId"] = await category_id_of(visit, wanted.categoryId)
    return query


def _filter(query: Mapping[str, Any]) -> PetFilter:
    """Return the filter of a query of ``listPets``.

    Raises:
        InvalidParameter: a field has an invalid value.
    """
    values = decode_query(urlencode(query).encode("ascii"), ListPetsQuery).values
    return PetFilter(values.status, values.categoryId)


def _wanted(visit: Visit) -> _Wanted:
    form = visit.form
    return _Wanted(
        form.text("status"),
        form.text("categoryId"),
        form.text("purpose") or _FOR_SPREADSHEETS,
        form.text("separator"),
        _number(form.text("part")),
        _number(form.text("after")),
    )


def _number(text: str) -> int:
    """Return a number of a link of the page, 0 if it is none."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_ID))
    return min(int(text), _MAX_ID) if is_number else 0


PAGES = (
    Page("GET", "/export", _show, needs="listPets"),
    Page("GET", "/export/pets.csv", _download, needs="listPets", has_file=True),
)
