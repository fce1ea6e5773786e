"""What changed in the store, for a page that is open: a long poll of the feed of events."""

from collections.abc import Collection, Sequence
from time import perf_counter
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from petstore.api.authentication import require_network
from petstore.api.events import LATEST
from petstore.api.messages import json_response
from petstore.console.cookies import session_secret
from petstore.console.page import Page, Visit
from petstore.domain.events import EVENT_TYPES, EventType, Position, readable_types
from petstore.errors import CursorExpired, InvalidParameter, MissingKey, MissingScope
from petstore.http.messages import Response
from petstore.store.console_sessions import Session, find_session

_SECONDS = 25.0
_AT_ONCE = 100
_NO_STORE = b"cache-control: no-store"


def _kind_of(event: EventType) -> str:
    """Return the kind of the resource that events of a type are about."""
    kind = event.partition(".")[0]
    return "key" if kind == "deprecation" else kind


_KINDS = tuple(dict.fromkeys(map(_kind_of, EVENT_TYPES)))


class Changes(Struct, frozen=True):
    """The resources that changed, such as ``pet/7``, and the cursor to ask with next time.

    ``resources`` is ``None`` if any may have changed.
    """

    cursor: str
    resources: Sequence[str] | None


async def _changes(visit: Visit) -> Response:
    """Respond as soon as something has changed after a cursor, or with nothing after 25 seconds.

    The query has the cursor ``after``, and the ``kinds`` of resources. Without a cursor the
    response is at once, with the newest one.

    Raises:
        InvalidParameter: the query is not of this console.
        MissingScope: the key may read none of these changes.
        MissingKey: the session has ended while this waited.
    """
    after, waited = visit.form.text("after"), 0.0
    found = await _read(visit, after)
    if found.resources == []:
        position, began = Position.of_cursor(found.cursor), perf_counter()
        await visit.services.feed.wait(
            position.sequence, _types(visit), visit.key.id, _SECONDS, visit.request
        )
        waited = perf_counter() - began
        await _look_again(visit)
        found = await _read(visit, found.cursor)
    if found.resources != []:
        # The lists that the page is about to read must not be older than the changes.
        await visit.services.readers.record_write(visit.key.id)
    return replace(json_response(200, found, [_NO_STORE]), waited=waited)


async def _read(visit: Visit, after: str) -> Changes:
    """Return what changed after a cursor; without one, or if it is too much, any may have."""
    query: dict[str, Any] = {"type": _types(visit), "limit": _AT_ONCE}
    if after:
        try:
            found = await visit.call("listEvents", query=query | {"cursor": after})
        except CursorExpired:
            pass
        else:
            if len(found.value) < _AT_ONCE:
                resources = dict.fromkeys(event.resource for event in found.value)
                return Changes(found.cursor, [*resources])
    latest = await visit.call("listEvents", query=query | {"cursor": LATEST})
    return Changes(latest.cursor, None)


def _types(visit: Visit) -> Collection[EventType]:
    """Return the types of events about the wanted kinds that the key may read.

    Raises:
        InvalidParameter: there is no such kind.
        MissingScope: the key may read none of them.
    """
    kinds = visit.form.text("kinds").split()
    if not kinds or not set(kinds).issubset(_KINDS):
        msg = f"kinds: expected some of {', '.join(_KINDS)}"
        raise InvalidParameter(msg)
    readable = readable_types(visit.key.scopes)
    types = [kind for kind in EVENT_TYPES if kind in readable and _kind_of(kind) in kinds]
    if not types:
        msg = "this key may not see these changes"
        raise MissingScope(msg)
    return types


async def _look_again(visit: Visit) -> None:
    """Find the session again: it, its key or its rights may have ended during the wait.

    Raises:
        MissingKey: it has ended.
        NetworkNotAllowed: its key may no longer be used from there.
    """
    services = visit.services
    secret, environment = session_secret(visit.request, visit.root), services.keys.environment
    session = await find_session(services.store, secret, environment, services.clock())
    if not isinstance(session, Session):
        msg = "sign in again"
        raise MissingKey(msg)
    visit.session = session
    if visit.key.allowed_networks:
        require_network(visit.key, visit.client)


PAGES = (Page("GET", "/changes", _changes, needs="listEvents"),)
