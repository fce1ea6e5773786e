"""The page of exports, and the files that it leads to. A large export comes in parts."""

from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlencode

from petstore.console.allowance import ROWS_A_REQUEST, allowance_of, charge, requests_for
from petstore.console.categories import category_form
from petstore.console.downloads import SEPARATOR, CsvDownload, dated, delimiter_of
from petstore.console.fields import FieldSet, choice
from petstore.console.page import ConsolePage, PageRequest
from petstore.domain.decoding import integer_in
from petstore.errors import PetstoreError
from petstore.http.messages import Response
from petstore.pets.exports import ExportPart, export_pets
from petstore.pets.model import PetFilter
from petstore.pets.pages import (
    CATEGORY_FILTER,
    STATUS_FILTER,
    filters_of,
    pet_filter,
)
from petstore.pets.store import count_pets_after, next_pets_after

PART = 50_000
"""How many animals a file has at most: it is on the disk until it is sent."""

_MAX_ID = 2**63 - 1
_FOR_IMPORTS = "import"
_FILTERS = FieldSet(STATUS_FILTER, CATEGORY_FILTER)
_FORM = FieldSet(
    *_FILTERS.fields,
    choice(
        *("purpose", "The file is for"),
        *(("spreadsheet", "a spreadsheet"), (_FOR_IMPORTS, "another import")),
    ),
    SEPARATOR,
)


class _Part(NamedTuple):
    """A part of a large export: it begins after an id. Without parts, the ``number`` is 0."""

    number: int
    after: int


async def _show(visit: PageRequest) -> Response:
    part, following = _part(visit), None
    if part.number:
        filters = pet_filter(await _query(visit))
        next_after = await _next_after(visit, filters, part.after)
        following = None if next_after is None else _Part(part.number + 1, next_after)
    return await _page(visit, following=following)


async def _download(visit: PageRequest) -> Response:
    part, query, typed = _part(visit), await _query(visit), _FORM.typed(visit.form)
    found = await visit.execute("listPets", query=query | {"limit": 1})
    filters = pet_filter(query)
    if not found.value:
        return await _page(visit, is_empty=True)
    if not part.number and await _next_after(visit, filters, part.after):
        return await visit.redirect(f"/export?{_query_of(visit, part._replace(number=1))}")
    store = visit.services.store
    count = await count_pets_after(store, filters, part.after, PART)
    cost = requests_for(count)
    if not await charge(visit, cost):
        return await _page(visit, short_of=cost)
    file = CsvDownload()
    if not visit.is_head:
        await export_pets(
            store,
            file,
            "csv",
            lambda _: None,
            part=ExportPart(filters, part.after, PART),
            spreadsheet_safe=typed["purpose"] != _FOR_IMPORTS,
            delimiter=delimiter_of(visit.form),
        )
    name = f"animals-part-{part.number}" if part.number else "animals"
    return file.response(dated(name, visit.services.clock()))


async def _page(
    visit: PageRequest,
    error: PetstoreError | None = None,
    *,
    following: _Part | None = None,
    is_empty: bool = False,
    short_of: int = 0,
) -> Response:
    form = await category_form(visit, _FORM.new(visit.form, error), "any")
    return visit.page(
        "export.html",
        error=error,
        form=form,
        part=_part(visit),
        following=following,
        query_of=partial(_query_of, visit),
        max_pets=PART,
        is_empty=is_empty,
        short_of=short_of,
        allowance=await allowance_of(visit),
        rows_a_request=ROWS_A_REQUEST,
    )


async def _next_after(visit: PageRequest, filters: PetFilter, after: int) -> int | None:
    """Return the last id of a part, ``None`` if no animals follow it."""
    return await next_pets_after(visit.services.store, filters, after, PART)


async def _query(visit: PageRequest) -> dict[str, Any]:
    """Return the filters of the form as ``listPets`` takes them."""
    return await filters_of(visit, _FILTERS.body(_FILTERS.typed(visit.form)))


def _part(visit: PageRequest) -> _Part:
    return _Part(_number(visit.form.text("part")), _number(visit.form.text("after")))


def _query_of(visit: PageRequest, part: _Part) -> str:
    """Return the query of the address of a part."""
    return urlencode({**_FORM.typed(visit.form), "part": part.number, "after": part.after})


def _number(text: str) -> int:
    """Return a number of a link of the page, 0 if it is none."""
    return min(max(integer_in(text) or 0, 0), _MAX_ID)


PAGES = (
    ConsolePage("GET", "/export", _show, "listPets", _page),
    ConsolePage("GET", "/export/pets.csv", _download, "listPets", _page, has_file=True),
)
