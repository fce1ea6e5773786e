"""The operation that reads the feed of events."""

import asyncio
from functools import partial
from time import perf_counter
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from petstore.databases.contract import Reader
from petstore.domain.decoding import integer_in
from petstore.domain.fields import INT64_MAX
from petstore.errors import CursorExpired, InvalidParameter, MissingScope
from petstore.events.model import (
    IN_FEED,
    KINDS,
    Event,
    EventType,
    Position,
    key_ids_of,
    readable_types,
    scope_of,
)
from petstore.events.search import EventFilter, FeedPage, read_events
from petstore.events.store import newest_position, publish_first
from petstore.interface.authentication import require_scope
from petstore.interface.operation import Call, Context, Operation, Result, Success
from petstore.interface.pages import limit_of
from petstore.keys.model import Caller

LATEST = "latest"
_MAX_SEARCHES = 10
_A_CURSOR = f"the cursor of a Link header, unchanged, or {LATEST}"
_NUMBER = "[1-9][0-9]{0,18}"
_AN_ACTOR = "key or person, then a slash and an id, such as person/2, or operator or service"
_A_RESOURCE = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}, then a slash and an id, such as pet/17"


_Types = Annotated[
    list[EventType],
    Meta(max_length=100, description="Filters by type; may be repeated, up to 100 times."),
]
_Resource = Annotated[
    str,
    Meta(
        pattern=rf"^(?:{'|'.join(KINDS)})/{_NUMBER}$",
        max_length=28,
        description="Only events of this resource, such as `pet/17`: its history.",
        examples=["pet/7"],
        extra={"expected": _A_RESOURCE},
    ),
]
_Actor = Annotated[
    str,
    Meta(
        pattern=rf"^(?:operator|service|(?:key|person)/{_NUMBER})$",
        max_length=26,
        description="Only events that this actor caused, such as `person/2` or `service`.",
        examples=["key/3"],
        extra={"expected": _AN_ACTOR},
    ),
]
_Order = Annotated[
    Literal["sequence", "-sequence"],
    Meta(
        description=(
            "The order: `sequence` (the default), or `-sequence` for the newest first, which goes"
            " neither with `wait` nor with `cursor=latest`."
        )
    ),
]
_Cursor = Annotated[
    str,
    Meta(
        pattern=rf"^(?:{LATEST}|{IN_FEED.pattern})$",
        # The pattern's end alone would let a line break pass.
        max_length=IN_FEED.max_length,
        description=(
            "Where to continue, from the `Link` header of the previous page. `latest` starts after"
            " the newest event. Without a cursor, the feed starts with the oldest event that is"
            " kept."
        ),
        examples=[LATEST],
        extra={"expected": _A_CURSOR},
    ),
]
_Wait = Annotated[
    int,
    Meta(
        ge=0,
        le=25,
        description=(
            "How many seconds to wait for an event if there is none (long poll). The response"
            " comes as soon as there is an event. However long it takes, it counts as one request."
        ),
        extra={"expected": "an integer from 0 to 25, in plain digits"},
    ),
]


class ListEventsQuery(Struct, frozen=True):
    limit: Annotated[int, limit_of("events")] = 20
    type: _Types | UnsetType = UNSET
    resource: _Resource | UnsetType = UNSET
    actor: _Actor | UnsetType = UNSET
    sort: _Order = "sequence"
    cursor: _Cursor | UnsetType = UNSET
    wait: _Wait = 0


async def _list(context: Context, call: Call[None, ListEventsQuery]) -> Result[list[Event]]:
    query, services = call.query, context.services
    if query.sort == "-sequence":
        return await _list_newest(context, query)
    wanted = _wanted(query, context.caller)
    after = await _position(query, services.store)
    ends, waited = perf_counter() + query.wait, 0.0
    page = await _search(context, wanted, after, query)
    while not page.events and page.is_last and (began := perf_counter()) < ends:
        after, seconds = page.position, ends - began
        is_news = await services.feed.wait(after.sequence, wanted, seconds, context.client)
        waited += perf_counter() - began
        caller = await context.find_caller_again()
        if not is_news:
            break
        wanted = _wanted(query, caller)  # its scopes may be others by now
        page = await _search(context, wanted, after, query)
    cursor = IN_FEED.encode(page.position)
    return Result(page.events, "" if page.is_last else cursor, cursor, waited=waited)


async def _list_newest(context: Context, query: ListEventsQuery) -> Result[list[Event]]:
    if query.wait or query.cursor == LATEST:
        raise InvalidParameter(f"sort: expected no -sequence together with wait or cursor={LATEST}")
    wanted = _wanted(query, context.caller)
    if query.cursor is UNSET:
        await publish_first(context.services.store)
    before = await _position(query, context.services.store)
    page = await _search(context, wanted, before, query)
    return Result(page.events, "" if page.is_last else IN_FEED.encode(page.position))


async def _position(query: ListEventsQuery, store: Reader) -> Position | None:
    if query.cursor is UNSET:
        return None
    if query.cursor == LATEST:
        return await newest_position(store)
    try:
        return IN_FEED.decode(query.cursor)
    except ValueError:
        raise InvalidParameter(f"cursor: expected {_A_CURSOR}") from None


def _wanted(query: ListEventsQuery, caller: Caller) -> EventFilter:
    for name, expected in (("resource", _A_RESOURCE), ("actor", _AN_ACTOR)):
        number = (getattr(query, name) or "").partition("/")[2]
        if number and not 0 < (integer_in(number) or 0) <= INT64_MAX:
            raise InvalidParameter(f"{name}: expected {expected}")
    if query.resource:
        require_scope(caller, scope_of(query.resource.partition("/")[0]))
    types = readable_types(caller.scopes) if query.type is UNSET else frozenset(query.type)
    for each in types:
        require_scope(caller, scope_of(each))
    return EventFilter(types, key_ids_of(caller), query.resource or "", query.actor or "")


async def _search(
    context: Context, wanted: EventFilter, start: Position | None, query: ListEventsQuery
) -> FeedPage:
    read = partial(read_events, newest_first=query.sort == "-sequence")
    page = await read(context.services.store, wanted, start, query.limit)
    for _ in range(_MAX_SEARCHES):
        if page.events or page.is_last:
            break
        await asyncio.sleep(0)
        page = await read(context.services.store, wanted, page.position, query.limit)
    return page


_EVENT = {
    "id": "evt_5f1c3c6a9a3d2b3f0a7e9d02",
    "type": "pet.updated",
    "timestamp": "2026-11-21T10:05:00.120Z",
    "resource": "pet/7",
    "sequence": 2,
    "data": {"id": 7, "name": "Bella", "categoryId": 1, "status": "pending"},
    "previous": {"status": "available"},
    "actor": {"type": "person", "id": 5},
    "requestId": "3f9c0a7be1d2",
}

OPERATIONS = (
    Operation(
        id="listEvents",
        method="GET",
        path="/events",
        tag="Events",
        summary="List events",
        description=(
            "Returns events in the order in which their changes were committed; with"
            ' `sort=-sequence` the newest come first, and there is no `rel="latest"`.'
            ' `Link` has `rel="next"` only while there is more now, and `rel="latest"` on every'
            " page: where to resume later. A client that follows `next`, else `latest`, sees every"
            " event exactly once. A key sees the events that its scopes may read, and the events"
            " about itself; events of keys and people need `keys:admin`. With `resource` they are"
            " the history of one resource, with `actor` what one actor did. A page may be empty"
            " even if more events follow. With `wait` the response waits for an event."
        ),
        handler=_list,
        scope=None,
        tagged=False,
        no_store=True,
        waits=True,
        grows=True,
        query=ListEventsQuery,
        success=Success(200, "Events.", list[Event], [_EVENT]),
        errors=(CursorExpired, MissingScope),
    ),
)
