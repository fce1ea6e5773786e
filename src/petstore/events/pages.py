"""The events in the console: *Activity*, for administrators, and a long poll for open pages."""

from collections.abc import Collection, Sequence
from contextlib import suppress
from itertools import chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from petstore.console.forms import FieldSet, choice
from petstore.console.history import HistoryLine, newest_acts
from petstore.console.page import ConsolePage, PageRequest
from petstore.errors import CursorExpired, InvalidParameter, MissingScope
from petstore.events.model import (
    ADMIN_EVENT_TYPES,
    EVENT_TYPES,
    KINDS,
    EventType,
    kind_of,
    readable_types,
)
from petstore.events.operations import LATEST
from petstore.http.messages import Response
from petstore.interface.messages import json_response

_SECONDS = 25
_AT_ONCE = 100


class Changes(Struct, frozen=True):
    """``resources``, such as ``pet/7``, is ``None`` if any may have changed."""

    cursor: str
    resources: Sequence[str] | None


async def _changes(request: PageRequest) -> Response:
    """Respond at once without a cursor ``after``, else with a change or after 25 seconds."""
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
    return replace(json_response(200, found, [b"cache-control: no-store"]), waited=waited)


def _types(request: PageRequest) -> Collection[EventType]:
    kinds = request.form.text("kinds").split()
    if not kinds or not set(kinds).issubset(KINDS):
        raise InvalidParameter(f"kinds: expected some of {', '.join(KINDS)}")
    readable = readable_types(request.caller.scopes)
    types = [kind for kind in EVENT_TYPES if kind in readable and kind_of(kind) in kinds]
    if not types:
        raise MissingScope("you cannot see these changes")
    return types


_ON_A_PAGE = 20
_OFFERED = 100
_ADMIN = "key"
_KINDS = {"pet": "pets", "order": "orders", "category": "categories", _ADMIN: "keys and people"}
_TYPES = {
    kind: [
        each
        for each in EVENT_TYPES
        if (each in ADMIN_EVENT_TYPES if kind == _ADMIN else kind_of(each) == kind)
    ]
    for kind in _KINDS
}


def _filters(actors: dict[str, str]) -> FieldSet:
    return FieldSet(
        choice("actor", "Person or key", ("", "anyone"), *actors.items()),
        choice("kind", "Kind", ("", "any"), *_KINDS.items()),
    )


async def _activity(request: PageRequest) -> Response:
    typed = _filters({}).typed(request.form)
    lines: list[HistoryLine] = []
    cursor, following = request.form.text("cursor"), ""
    if request.error is None:
        if typed["kind"] not in ("", *_TYPES):
            raise InvalidParameter(f"kind: expected one of {', '.join(_TYPES)}")
        types = _TYPES.get(typed["kind"]) or [*chain(*_TYPES.values())]
        query = {"type": types, "actor": typed["actor"] or None}
        lines, following = await newest_acts(request, query, _ON_A_PAGE, cursor)
    return request.page(
        "activity.html",
        form=_filters(await _actors(request, typed["actor"])).new(request.form, request.error),
        filters={name: text for name, text in typed.items() if text},
        lines=lines,
        following=following,
        is_latest=not cursor,
        is_full=len(lines) == _ON_A_PAGE,
    )


async def _actors(request: PageRequest, actor: str) -> dict[str, str]:
    """Return the people and keys to choose from; the one that is wanted is among them."""
    found: dict[str, str] = {}
    for kind, operation in (("person", "listPeople"), ("key", "listKeys")):
        page = await request.execute(operation, query={"limit": _OFFERED})
        found |= {f"{kind}/{each.id}": f"{each.name} ({kind} {each.id})" for each in page.value}
    if actor:
        found.setdefault(actor, actor.replace("/", " "))
    return dict(sorted(found.items(), key=lambda one: one[1].casefold()))


PAGES = (
    ConsolePage("GET", "/changes", _changes, "listEvents"),
    ConsolePage("GET", "/activity", _activity, "listKeys", _activity),
)
