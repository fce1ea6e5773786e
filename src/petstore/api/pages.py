"""Lists, page by page."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.api.entity_tags import with_tag
from petstore.api.messages import json_response
from petstore.api.operation import Call
from petstore.databases.contract import Reader
from petstore.domain.paging import CURSOR_PATTERN, decode_cursor, encode_cursor
from petstore.http.messages import Response
from petstore.store.pages import Page


def limit_of(records: str) -> Meta:
    """Say what ``limit`` is where a list holds such ``records``."""
    return Meta(
        ge=1,
        le=100,
        description=f"Maximum number of {records} returned.",
        extra={"expected": "an integer from 1 to 100, in plain digits"},
    )


class PageQuery(Struct, frozen=True):
    """The query parameters of every list."""

    limit: Annotated[int, limit_of("records")] = 20
    cursor: (
        Annotated[
            str,
            Meta(
                pattern=CURSOR_PATTERN,
                max_length=11,  # or a line break would pass behind the pattern's end
                description="Where the page starts: from the `Link` header of the page before.",
                extra={"expected": "the cursor of a Link header, unchanged"},
            ),
        ]
        | UnsetType
    ) = UNSET

    @property
    def after(self) -> int | None:
        """The id after which the page starts."""
        return None if self.cursor is UNSET else decode_cursor(self.cursor)


async def answer_from_memory(
    call: Call, read: Callable[[Reader], Awaitable[Page[Any]]]
) -> Response:
    """Respond with a page, from memory if the same was asked since the last change.

    It is read from wherever every change of the caller is known.
    """

    async def answer() -> Response:
        reader = await call.services.readers.for_key(call.key.id)
        return page_response(call, await read(reader))

    return await call.services.answers.get(call.request.path, call.request.query, answer)


def page_response(call: Call, page: Page[Any]) -> Response:
    """Respond with a page, and a ``Link`` to the next if there is one (RFC 8288).

    A page with the only item of a list has that item's own tag, for ``If-Match`` when it is
    changed. Any other has one of its own, which says too if there is a next page.
    """
    if page.next_after is None:
        answer = json_response(200, page.items)
        return with_tag(answer, answer.body[1:-1] if len(page.items) == 1 else answer.body)
    filters = call.query.without_cursor
    rest = f"{filters}&" if filters else ""
    target = f"{call.request.path}?{rest}cursor={encode_cursor(page.next_after)}"
    link = f'link: <{target}>; rel="next"'.encode("ascii")
    answer = json_response(200, page.items, [link])
    return with_tag(answer, answer.body + link)
