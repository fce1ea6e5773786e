"""The page of exports, and the files that it leads to. A large export comes in parts."""

import io
from typing import Any, NamedTuple
from urllib.parse import urlencode

from petstore.api.parameters import decode_query
from petstore.api.pets import ListPetsQuery
from petstore.console.downloads import DELIMITERS, csv_download, dated
from petstore.console.forms import problem_of
from petstore.console.page import Page, Visit
from petstore.domain.pets import PetFilter
from petstore.errors import InvalidParameter
from petstore.http.messages import Response
from petstore.store.pet_files import Part, export_pets
from petstore.store.pets import next_pets_after

PART = 50_000
"""How many animals a file has at most: a response is in memory until it is sent."""

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
    def filters(self) -> dict[str, str]:
        """The filters as ``listPets`` takes them."""
        filters = {"status": self.status, "categoryId": self.categoryId}
        return {name: value for name, value in filters.items() if value}

    @property
    def query(self) -> str:
        """The query of an address."""
        return urlencode(self._asdict())


async def _show(visit: Visit) -> Response:
    wanted = _wanted(visit)
    if not wanted.part:
        return _page(visit, wanted)
    try:
        next_after = await _next_after(visit, wanted)
    except InvalidParameter as error:
        return _page(visit, wanted, error)
    following = next_after and wanted._replace(part=wanted.part + 1, after=next_after)
    return _page(visit, wanted, following=following)


async def _download(visit: Visit) -> Response:
    wanted = _wanted(visit)
    try:
        found = await visit.call("listPets", query=wanted.filters | {"limit": 1})
    except InvalidParameter as error:
        return _page(visit, wanted, error)
    if not found.value:
        return _page(visit, wanted, is_empty=True)
    if not wanted.part and await _next_after(visit, wanted):
        return await visit.redirect(f"/export?{wanted._replace(part=1).query}")
    file = io.StringIO(newline="")
    await export_pets(
        await visit.services.readers.for_key(visit.key.id),
        file,
        "csv",
        lambda _: None,
        part=Part(_filter(wanted), wanted.after, PART),
        spreadsheet_safe=wanted.purpose == _FOR_SPREADSHEETS,
        delimiter=DELIMITERS.get(wanted.separator, ","),
    )
    name = f"animals-part-{wanted.part}" if wanted.part else "animals"
    return csv_download(dated(name, visit.services.clock()), file.getvalue())


def _page(
    visit: Visit, wanted: _Wanted, error: InvalidParameter | None = None, **context: Any
) -> Response:
    return visit.page(
        "export.html",
        200 if error is None else error.status,
        **{
            "wanted": wanted,
            "max_pets": PART,
            "is_empty": False,
            "following": None,
            "problem": None if error is None else problem_of(error),
            **context,
        },
    )


async def _next_after(visit: Visit, wanted: _Wanted) -> int | None:
    """Return the last id of a part, ``None`` if no animals follow it."""
    reader = await visit.services.readers.for_key(visit.key.id)
    return await next_pets_after(reader, _filter(wanted), wanted.after, PART)


def _filter(wanted: _Wanted) -> PetFilter:
    """Return the filter of the form.

    Raises:
        InvalidParameter: a field has an invalid value.
    """
    values = decode_query(urlencode(wanted.filters).encode("ascii"), ListPetsQuery).values
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
    Page("GET", "/export/pets.csv", _download, needs="listPets"),
)
