"""What changed in the store, for a page that is open: a long poll of the feed of events."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from petstore.console.page import ConsolePage, PageRequest
from petstore.errors import CursorExpired, InvalidParameter, MissingScope
from petstore.events.model import EVENT_TYPES, KINDS, EventType, kind_of, readable_types
from petstore.events.operations import LATEST
from petstore.http.messages import Response
from petstore.interface.messages import json_response

_SECONDS = 25
_AT_ONCE = 100
_NO_STORE = b"cache-control: no-store"


class Changes(Struct, frozen=True):
    """The resources that changed, such as ``pet/7``, and the cursor to ask with next time.

    ``resources`` is ``None`` if any may have changed.
    """

    cursor: str
    resources: Sequence[str] | None


async def _changes(request: PageRequest) -> Response:
    """Respond as soon as something has changed after a cursor, or with nothing after 25 seconds.

    The query has the cursor ``after``, and the ``kinds`` of resources. Without a cursor the
    response is at once, with the newest one.
    """
    query: dict[str, Any] = {"type": _types(request), "limit": _AT_ONCE}
    found, waited = None, 0.0
    if after := request.form.text("after"):
        with suppress(CursorExpired):
            page = await request.execute(
                "listEvents", query=query | {"cursor": after, "wait": _SECONDS}
            )
            waited = page.waited
            if len(page.value) < _AT_ONCE:
                resources = dict.fromkeys(event.resource for event in page.value)
                found = Changes(page.latest, [*resources])
    if found is None:
        latest = await request.execute("listEvents", query=query | {"cursor": LATEST})
        found = Changes(latest.latest, None)
    return replace(json_response(200, found, [_NO_STORE]), waited=waited)


def _types(request: PageRequest) -> Collection[EventType]:
    kinds = request.form.text("kinds").split()
    if not kinds or not set(kinds).issubset(KINDS):
        msg = f"kinds: expected some of {', '.join(KINDS)}"
        raise InvalidParameter(msg)
    readable = readable_types(request.caller.scopes)
    types = [kind for kind in EVENT_TYPES if kind in readable and kind_of(kind) in kinds]
    if not types:
        msg = "you may not see these changes"
        raise MissingScope(msg)
    return types


PAGES = (ConsolePage("GET", "/changes", _changes, needs="listEvents"),)
