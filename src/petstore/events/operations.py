"""The operation that reads the feed of events."""

import asyncio
from collections.abc import Collection
from functools import partial
from operator import attrgetter
from time import perf_counter
from typing import Annotated, Literal, NamedTuple

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.databases.contract import Reader
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.errors import CursorExpired, InvalidParameter, MissingScope
from petstore.events.examples import example_of
from petstore.events.history import read_resource
from petstore.events.model import (
    EVENT_TYPES,
    IN_FEED,
    KINDS,
    Event,
    EventType,
    Position,
    readable_types,
    scope_of,
    scope_of_kind,
)
from petstore.events.store import FeedPage, newest_position, read_feed
from petstore.interface.authentication import require_scope
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.interface.pages import limit_of
from petstore.keys.model import Caller

LATEST = "latest"
_MAX_SEARCHES = 10
_RESOURCE = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}, then a slash and an id, such as pet/17"


class ListEventsQuery(Struct, frozen=True):
    """The query parameters of ``listEvents``."""

    limit: Annotated[int, limit_of("events")] = 20
    type: (
        Annotated[
            list[EventType],
            Meta(
                max_length=100,
                description="Filters by type; may be repeated, up to 100 times.",
                extra={"expected": f"one of {', '.join(map(repr, EVENT_TYPES))}"},
            ),
        ]
        | UnsetType
    ) = UNSET
    resource: (
        Annotated[
            str,
            Meta(
                pattern=rf"^(?:{'|'.join(KINDS)})/[1-9][0-9]{{0,18}}$",
                max_length=28,
                description="Only events of this resource, such as `pet/17`: its history.",
                extra={"expected": _RESOURCE},
            ),
        ]
        | UnsetType
    ) = UNSET
    cursor: (
        Annotated[
            str,
            Meta(
                pattern=rf"^(?:{LATEST}|{IN_FEED.pattern}(?:\.{IN_FEED.pattern})?)$",
                # The pattern's end alone would let a line break pass.
                max_length=2 * IN_FEED.max_length + 1,
                description=(
                    "Where to continue, from the `Link` header of the previous page. `latest`"
                    " starts after the newest event. Without a cursor, the feed starts with the"
                    " oldest event that is kept."
                ),
                extra={"expected": f"the cursor of a Link header, unchanged, or {LATEST}"},
            ),
        ]
        | UnsetType
    ) = UNSET
    until: (
        Annotated[
            Literal["now"],
            Meta(
                description=(
                    "`now` ends the list at what is there at the first request. The last page has"
                    ' no `rel="next"`, but `rel="latest"`: where to go on another time.'
                ),
                extra={"expected": "'now'"},
            ),
        ]
        | UnsetType
    ) = UNSET
    wait: Annotated[
        int,
        Meta(
            ge=0,
            le=25,
            description=(
                "How many seconds to wait for an event if there is none (long poll). The response"
                " comes as soon as there is an event. However long it takes, it counts as one"
                " request."
            ),
            extra={"expected": "an integer from 0 to 25, in plain digits"},
        ),
    ] = 0


class _FeedRange(NamedTuple):
    """What is read: from ``after``, or the oldest event, until ``end``, or for ever."""

    after: Position | None
    end: Position | None

    def ends_with(self, page: FeedPage) -> bool:
        """Return whether the page is the last one."""
        return self.end is not None and (
            page.is_last or page.position.sequence >= self.end.sequence
        )


async def _list(context: Context, call: Call[None, ListEventsQuery]) -> Result[list[Event]]:
    query, services, resource = call.query, context.services, _resource(call.query)
    types = _types(query, context.caller)
    wanted = await _range(query, services.store)
    ends, waited = perf_counter() + query.wait, 0.0
    page = await _search(context, types, resource, wanted, query.limit)
    while not page.events and page.is_last and (began := perf_counter()) < ends:
        wanted, seconds = wanted._replace(after=page.position), ends - began
        is_news = await services.feed.wait(
            page.position.sequence, types, context.caller.id, seconds, context.client, resource
        )
        waited += perf_counter() - began
        key = await context.find_caller_again()
        if not is_news:
            break
        types = _types(query, key)  # its scopes may be others by now
        page = await _search(context, types, resource, wanted, query.limit)
    return _result(page, wanted, waited)


def _result(page: FeedPage, wanted: _FeedRange, waited: float) -> Result[list[Event]]:
    end, events, position = wanted.end, page.events, page.position
    if end is None:
        # Also where nothing follows yet, there is a next page.
        return Result(events, IN_FEED.encode(position), waited=waited)
    if not wanted.ends_with(page):
        return Result(events, f"{IN_FEED.encode(position)}.{IN_FEED.encode(end)}")
    events = [event for event in events if event.sequence <= end.sequence]
    latest = min(position, end, key=attrgetter("sequence"))
    return Result(events, IN_FEED.encode(latest), is_end=True)


async def _range(query: ListEventsQuery, store: Reader) -> _FeedRange:
    """Return what a request reads; a cursor may have the end of the pages before.

    Raises:
        InvalidParameter: it has a broken cursor, or would wait for events after the end.
    """
    after = end = None
    if query.cursor is not UNSET and query.cursor != LATEST:
        after, end = _positions(query.cursor)
    is_latest = query.cursor == LATEST
    if is_latest or (query.until is not UNSET and end is None):
        newest = await newest_position(store)
        after = newest if is_latest else after
        end = end if query.until is UNSET else newest
    if end is not None and query.wait:
        msg = "wait: expected no wait together with until"
        raise InvalidParameter(msg)
    return _FeedRange(after, end)


def _positions(cursor: str) -> tuple[Position, Position | None]:
    """Return the position in a cursor, and the end of its pages if they have one.

    Raises:
        InvalidParameter: it is not a cursor of the feed.
    """
    after, _, end = cursor.partition(".")
    try:
        return IN_FEED.decode(after), IN_FEED.decode(end) if end else None
    except ValueError:
        msg = f"cursor: expected the cursor of a Link header, unchanged, or {LATEST}"
        raise InvalidParameter(msg) from None


def _resource(query: ListEventsQuery) -> str:
    """Return the resource whose events are wanted, empty if it is any.

    Raises:
        InvalidParameter: it has no id of a resource.
    """
    resource = query.resource or ""
    number = integer_in(resource.partition("/")[2]) or 0
    if resource and not 0 < number <= INT64_MAX:
        msg = f"resource: expected {_RESOURCE}"
        raise InvalidParameter(msg)
    return resource


def _types(query: ListEventsQuery, key: Caller) -> Collection[str]:
    """Return the types that are wanted, and that the key may read.

    Raises:
        MissingScope: the key may not read one that the client asks for, or the resource.
    """
    if query.resource is not UNSET:
        require_scope(key, scope_of_kind(query.resource.partition("/")[0]))
    if query.type is UNSET:
        return readable_types(key.scopes)
    for kind in query.type:
        require_scope(key, scope_of(kind))
    return frozenset(query.type)


async def _search(
    context: Context, types: Collection[str], resource: str, wanted: _FeedRange, limit: int
) -> FeedPage:
    """Read on until there is an event, the feed ends, or enough was searched for one request."""
    read = partial(read_resource, resource=resource) if resource else read_feed
    store, key_id = context.services.store, context.caller.id
    page = await read(store, types, key_id, wanted.after, limit)
    for _ in range(_MAX_SEARCHES):
        if page.events or page.is_last or wanted.ends_with(page):
            break
        await asyncio.sleep(0)
        page = await read(store, types, key_id, page.position, limit)
    return page


OPERATIONS = (
    Operation(
        id="listEvents",
        method="GET",
        path="/events",
        tag="Events",
        summary="List events",
        description=(
            "Returns events, oldest first, in the order in which their changes were committed."
            ' Every page has `Link` with `rel="next"`, even an empty one: a client that follows it'
            " sees every event exactly once. With `until=now` the list ends. A key sees the events"
            " that its scopes may read, and the events about itself. With `resource` they are the"
            " history of one resource. A page may be empty even if more events follow. With `wait`"
            " the response waits for an event."
        ),
        handler=_list,
        scope=None,
        tagged=False,
        no_store=True,
        waits=True,
        endless=True,
        query=ListEventsQuery,
        success=Success(200, "Events.", list[Event], [example_of("pet.updated")]),
        errors=(CursorExpired, MissingScope),
    ),
)
