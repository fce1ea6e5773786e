"""Query parameters, decoded to typed structs, and pages of lists, kept until a change shows."""

import re
from collections import deque
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Annotated, Any, Generic, Literal, NamedTuple, TypeAlias, TypeVar
from urllib.parse import unquote_to_bytes, urlencode

from msgspec import UNSET, Meta, Struct, UnsetType, inspect
from msgspec.structs import replace

from petstore.databases.contract import Store
from petstore.databases.pages import Page
from petstore.domain.cursors import BY_DELIVERY, BY_ID, NEWEST_FIRST, CursorForm
from petstore.domain.decoding import convert, field_types, plain_value
from petstore.domain.fields import Int64, any_text
from petstore.domain.names import MAX_SEARCHED
from petstore.errors import InvalidParameter
from petstore.events.changes import PageRange, RecentChanges
from petstore.http.messages import Response
from petstore.interface.operation import Result, Values

P = TypeVar("P")

Count = Annotated[
    bool,
    Meta(
        description=(
            "`true` adds the header `X-Total-Count`: how many records match, or 10001 if there are"
            " more than 10,000."
        ),
        examples=[False],
    ),
]
Ids = Annotated[
    list[Int64],
    Meta(
        max_length=100,
        description=(
            "Filters by identifier; may be repeated, up to 100 times. `id[]=7` and `id[0]=7` mean"
            " the same."
        ),
        extra={"expected": "up to 100 integers from -2^63 to 2^63 - 1, in plain digits"},
    ),
]
Sort = Annotated[
    Literal["id", "-id"],
    Meta(
        description="The order: `id` (the default), or `-id`, the newest first. Not in a search.",
        examples=["id"],
    ),
]


_CURSORS = {
    BY_ID.pattern: BY_ID.encode(20),
    NEWEST_FIRST.pattern: NEWEST_FIRST.encode(20),
    BY_DELIVERY.pattern: BY_DELIVERY.encode((1_795_000_000_000, 20)),
}


def limit_of(records: str) -> Meta:
    return Meta(
        ge=1,
        le=100,
        description=f"Maximum number of {records} returned.",
        extra={"expected": "an integer from 1 to 100, in plain digits"},
    )


def cursor_of(*forms: CursorForm[Any]) -> Meta:
    patterns = "|".join(form.pattern for form in forms)
    return Meta(
        pattern=f"^({patterns})$" if len(forms) > 1 else f"^{patterns}$",
        # The pattern's end alone would let a line break pass.
        max_length=max(form.max_length for form in forms),
        description="Where the page starts, from the `Link` header of the previous page.",
        examples=[_CURSORS[forms[-1].pattern]],
        extra={"expected": "the cursor of a Link header, unchanged"},
    )


def search_text(description: str) -> Meta:
    return any_text(1, MAX_SEARCHED, description, "Be")


def require_plain_search(query: Any, by: str) -> None:
    if query.sort == "-id":
        raise InvalidParameter(f"sort: expected no sort together with {by}")
    if query.count is True:
        msg = f"count: expected no count together with {by}; a search is not counted"
        raise InvalidParameter(msg)


class PageQuery(Struct, frozen=True):
    limit: Annotated[int, limit_of("records")] = 20
    cursor: Annotated[str, cursor_of(BY_ID)] | UnsetType = UNSET

    @property
    def after(self) -> int | None:
        return self.start(BY_ID)

    def start(self, form: CursorForm[P]) -> P | None:
        if self.cursor is UNSET:
            return None
        try:
            return form.decode(self.cursor)
        except ValueError:
            msg = "cursor: expected the cursor of a Link header of this list, in the same order"
            raise InvalidParameter(msg) from None


def page_result(
    page: Page[Any],
    form: CursorForm[Any] = BY_ID,
    extent: PageRange | None = None,
    total: int | None = None,
) -> Result[Any]:
    """A page with a ``total`` has no extent: it changes with every item of the list."""
    cursor = "" if page.next_after is None else form.encode(page.next_after)
    return Result(page.items, cursor, extent=extent if total is None else None, total=total)


_LONGEST = 16384
# 100 ids and some; 100 ids as ``id%5B%5D``, 100 characters of four bytes, and some.
_MAX_PARAMETERS = 128
_MAX_ESCAPES = 640
_LONGEST_NAME = 64
# ``id[]`` and ``id[0]`` are how some clients write a list.
_BRACKETS = re.compile(r"\[[0-9]*\]\Z", re.ASCII)
_MAX_CACHED = _MAX_PARAMETERS - 1  # so none of these has too many
# As our links have it: the cursor last, and nothing escaped that could be another one.
_NEXT_PAGE = re.compile(rf"(?:([^%]*)&)?cursor=({BY_ID.pattern})".encode("ascii"))


class Query(NamedTuple, Generic[Values]):
    """The values of a query, and its known parameters but ``cursor`` as text."""

    values: Values
    filters: str = ""


def decode_query(query: bytes, into: type) -> Query[Any]:
    if len(query) > _MAX_CACHED:  # not worth its memory
        _check_size(query)
        return _decode(query, into)
    # The pages of a list differ in the cursor alone.
    page = _NEXT_PAGE.fullmatch(query)
    if page is None or query.count(b"cursor") > 1 or "cursor" not in field_types(into):
        return _decode_cached(query, into)
    filters, cursor = page.groups(b"")
    first, rest = _decode_cached(filters, into)
    return Query(replace(first, cursor=cursor.decode("ascii")), rest)


def _check_size(query: bytes) -> None:
    """Refuse a query that costs more to decode than a page costs to read."""
    if len(query) > _LONGEST:
        msg = f"the query: expected at most {_LONGEST} bytes"
    elif query.count(b"&") >= _MAX_PARAMETERS:
        msg = f"the query: expected at most {_MAX_PARAMETERS} parameters"
    elif query.count(b"%") > _MAX_ESCAPES:
        msg = f"the query: expected at most {_MAX_ESCAPES} percent-encoded bytes"
    else:
        return
    raise InvalidParameter(msg)


def _decode(query: bytes, into: type) -> Query[Any]:
    kinds = field_types(into)
    values: dict[str, Any] = {}
    filters = []
    for pair in query.split(b"&"):
        encoded, _, value = pair.partition(b"=")
        if len(encoded) > _LONGEST_NAME or (name := _name(encoded)) not in kinds:
            continue
        text, kind = _text(value), kinds[name]
        if isinstance(kind, inspect.ListType):
            values.setdefault(name, []).append(plain_value(text, kind.item_type))
        elif name in values:
            raise InvalidParameter(f"{name}: expected once, got it twice")
        else:
            values[name] = plain_value(text, kind)
        if name != "cursor":
            filters.append((name, text))
    return Query(convert(values, into, InvalidParameter), urlencode(filters))


_decode_cached = lru_cache(maxsize=1024)(_decode)


@lru_cache(maxsize=1024)
def _name(encoded: bytes) -> str:
    """Return a decoded name, without the brackets of a list. A list repeats it up to 100 times."""
    return _BRACKETS.sub("", _text(encoded))


def _text(encoded: bytes) -> str:
    """Decode a part of a query (application/x-www-form-urlencoded, URL standard)."""
    if b"%" in encoded or b"+" in encoded:
        encoded = unquote_to_bytes(encoded.replace(b"+", b" "))
    return encoded.decode(errors="replace")


_OVERHEAD = 896  # what a page takes beside its text


_Asked: TypeAlias = tuple[str, str, bytes]
"""What a GET asks for: the URL of the service, which the links of a page have, path and query."""

_Read: TypeAlias = Callable[[], Awaitable[tuple[Response, PageRange | None]]]
"""Makes a response, and says what it shows. One without an extent is not kept."""


class _CachedPage(Struct, gc=False):
    """A response, what it shows, and the number of the changes that were known to leave it."""

    response: Response
    extent: PageRange
    size: int
    checked: int
    is_used: bool = False


class ResponseCache:
    """The responses to reads on which no change has shown since.

    A response is never older than a committed change, whichever process made it. Together they take
    ``max_bytes``. The oldest makes room, but one that was used has another chance once every other
    one had (the CLOCK algorithm).
    """

    def __init__(self, store: Store, max_bytes: int = 14_000_000) -> None:
        self._changes = RecentChanges(store)
        self._pages: dict[_Asked, _CachedPage] = {}
        self._chances: deque[_Asked] = deque()
        self._room = max_bytes

    async def get(self, target: _Asked, read: _Read) -> Response:
        changes, page = self._changes, self._pages.get(target)
        known = changes.count if changes.is_current else await changes.catch_up()
        if page is not None and (
            page.checked == known or not changes.show_on(page.extent, page.checked)
        ):
            page.checked, page.is_used = known, True
            return page.response
        response, extent = await read()
        if extent is not None:
            # Behind what it encodes, msgspec leaves a third more room. A copy has none.
            body, head = memoryview(response.body).tobytes(), b"\r\n".join(response.headers)
            response = replace(response, body=body, headers=[head])
            size = sum(map(len, (*target, body, head))) + _OVERHEAD
            self._put(target, _CachedPage(response, extent, size, known))
        return response

    def _put(self, target: _Asked, page: _CachedPage) -> None:
        replaced = self._pages.get(target)
        if replaced is None:
            self._chances.append(target)
        else:
            self._room += replaced.size
        self._pages[target] = page
        self._room -= page.size
        while self._room < 0:
            oldest = self._chances.popleft()
            if self._pages[oldest].is_used:
                self._pages[oldest].is_used = False
                self._chances.append(oldest)
            else:
                self._room += self._pages.pop(oldest).size
