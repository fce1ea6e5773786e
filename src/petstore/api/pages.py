"""Lists: their query parameters, their pages and the link to the next page."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.api.entity_tags import with_tag
from petstore.api.messages import json_response
from petstore.api.operation import Call
from petstore.databases.contract import Reader
from petstore.domain.paging import CURSOR_PATTERN, MAX_CURSOR, decode_cursor, encode_cursor
from petstore.errors import InvalidParameter
from petstore.http.messages import Response
from petstore.store.pages import Page
from petstore.store.pet_search import PetsByName

P = TypeVar("P")
AnyPage: TypeAlias = Page[Any] | PetsByName

Sort = Annotated[
    Literal["id", "-id"],
    Meta(
        description="The order: `id` (the default), or `-id` for the newest first.",
        extra={"expected": "one of 'id', '-id'"},
    ),
]


def limit_of(records: str) -> Meta:
    """Describe the parameter ``limit`` of a list of such ``records``."""
    return Meta(
        ge=1,
        le=100,
        description=f"Maximum number of {records} returned.",
        extra={"expected": "an integer from 1 to 100, in plain digits"},
    )


def cursor_of(pattern: str, max_length: int) -> Meta:
    """Describe the parameter ``cursor`` of a list whose cursors have the form ``pattern``."""
    return Meta(
        pattern=pattern,
        max_length=max_length,  # the pattern's end alone would let a line break pass
        description="Where the page starts, from the `Link` header of the previous page.",
        extra={"expected": "the cursor of a Link header, unchanged"},
    )


class PageQuery(Struct, frozen=True):
    """The query parameters of every list."""

    limit: Annotated[int, limit_of("records")] = 20
    cursor: Annotated[str, cursor_of(CURSOR_PATTERN, MAX_CURSOR)] | UnsetType = UNSET

    @property
    def after(self) -> int | None:
        """The id after which the page starts."""
        return self.start(decode_cursor)

    def start(self, decode: Callable[[str], P]) -> P | None:
        """Return the position after which the page starts, ``None`` for the first page.

        Raises:
            InvalidParameter: the cursor is not one that ``decode`` takes: it is broken, or of
                another order of the list.
        """
        if self.cursor is UNSET:
            return None
        try:
            return decode(self.cursor)
        except ValueError:
            msg = "cursor: expected the cursor of a Link header of this list, in the same order"
            raise InvalidParameter(msg) from None


async def cached_page(
    call: Call[Any, Any],
    read: Callable[[Reader], Awaitable[AnyPage]],
    encode: Callable[[Any], str] = encode_cursor,
) -> Response:
    """Respond with a page, from the cache if the database has not changed since.

    The reader knows every change that the caller has made. ``encode`` makes the cursor of the
    position that the next page starts after.
    """

    async def respond() -> Response:
        reader = await call.services.readers.for_key(call.key.id)
        return page_response(call, await read(reader), encode)

    target = (call.root, call.request.path, call.request.query)
    return await call.services.response_cache.get(target, respond)


def page_response(
    call: Call[Any, Any], page: AnyPage, encode: Callable[[Any], str] = encode_cursor
) -> Response:
    """Respond with a page, and a ``Link`` to the next page if there is one (RFC 8288).

    If a list has a single item, its page has the tag of that item, for the ``If-Match`` of a
    change. Any other page has a tag of its own, which covers the path in the ``Link`` too, and not
    the host.
    """
    if page.next_after is None:
        response = json_response(200, page.items)
        body = response.body
        return with_tag(response, body[1:-1] if len(page.items) == 1 else body)
    cursor = encode(page.next_after)
    response = json_response(200, page.items, [next_link(call, cursor)])
    return with_tag(response, response.body + _next_target(call, cursor).encode("ascii"))


def next_link(call: Call[Any, Any], cursor: str) -> bytes:
    """Return the ``Link`` to the same list from ``cursor`` on (RFC 8288)."""
    return f'link: <{call.root}{_next_target(call, cursor)}>; rel="next"'.encode("ascii")


def _next_target(call: Call[Any, Any], cursor: str) -> str:
    filters = call.query.filters
    rest = f"{filters}&" if filters else ""
    return f"{call.request.path}?{rest}cursor={cursor}"
