"""The operation that reads the feed of events."""

import asyncio
from collections.abc import Collection
from functools import partial
from time import perf_counter
from typing import Annotated

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
                pattern=rf"^(?:{LATEST}|{IN_FEED.pattern})$",
                # The pattern's end alone would let a line break pass.
                max_length=IN_FEED.max_length,
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


async def _list(context: Context, call: Call[None, ListEventsQuery]) -> Result[list[Event]]:
    query, services, resource = call.query, context.services, _resource(call.query)
    types = _types(query, context.caller)
    after = await _position(query, services.store)
    ends, waited = perf_counter() + query.wait, 0.0
    page = await _search(context, types, resource, after, query.limit)
    while not page.events and page.is_last and (began := perf_counter()) < ends:
        after, seconds = page.position, ends - began
        is_news = await services.feed.wait(
            after.sequence, types, context.caller.id, seconds, context.client, resource
        )
        waited += perf_counter() - began
        key = await context.find_caller_again()
        if not is_news:
            break
        types = _types(query, key)  # its scopes may be others by now
        page = await _search(context, types, resource, after, query.limit)
    cursor = IN_FEED.encode(page.position)
    return Result(page.events, "" if page.is_last else cursor, cursor, waited=waited)


async def _position(query: ListEventsQuery, store: Reader) -> Position | None:
    """Return where the page begins, ``None`` at the oldest event.

    Raises:
        InvalidParameter: the cursor is not one of the feed.
    """
    if query.cursor is UNSET:
        return None
    if query.cursor == LATEST:
        return await newest_position(store)
    try:
        return IN_FEED.decode(query.cursor)
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
    context: Context, types: Collection[str], resource: str, after: Position | None, limit: int
) -> FeedPage:
    """Read on until there is an event, the feed ends, or enough was searched for one request."""
    read = partial(read_resource, resource=resource) if resource else read_feed
    store, key_id = context.services.store, context.caller.id
    page = await read(store, types, key_id, after, limit)
    for _ in range(_MAX_SEARCHES):
        if page.events or page.is_last:
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
            ' `Link` has `rel="next"` only while there is more now, and `rel="latest"` on every'
            " page: where to go on later. A client that follows `next`, else `latest`, sees every"
            " event exactly once. A key sees the events that its scopes may read, and the events"
            " about itself. With `resource` they are the history of one resource. A page may be"
            " empty even if more events follow. With `wait` the response waits for an event."
        ),
        handler=_list,
        scope=None,
        tagged=False,
        no_store=True,
        waits=True,
        grows=True,
        query=ListEventsQuery,
        success=Success(200, "Events.", list[Event], [example_of("pet.updated")]),
        errors=(CursorExpired, MissingScope),
    ),
)
