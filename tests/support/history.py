"""What a feed of events says, checked as a whole: each change is in it once, in its order."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeAlias

from msgspec.json import decode, encode

from petstore.databases.contract import Statement, Store
from petstore.databases.postgres import PostgresStore
from petstore.events.model import EVENT_TYPES, Event, Position
from petstore.events.store import publish_all, read_feed
from support.service import Service
from support.waiting import eventually

Record: TypeAlias = dict[str, Any]

_END = {"pet.deleted", "category.deleted"}
_MOVE_A_PET = {"order.placed", "order.delivered", "order.cancelled", "order.lapsed"}


async def published(store: Store) -> None:
    """Give every committed event its place, as the service does."""
    if isinstance(store, PostgresStore):
        await publish_all(store)


async def published_by(service: Service) -> None:
    """Wait until a running service has given every committed event its place."""
    if isinstance(service.store, PostgresStore):
        pending = Statement("SELECT 1 FROM events_outbox LIMIT 1")

        async def is_published() -> bool:
            return not await service.store.read(pending)

        await eventually(is_published)


async def events_after(
    store: Store, after: Position | None = None, types: Iterable[str] = EVENT_TYPES
) -> list[Event]:
    """Walk the feed from a position, or from its start, to its end."""
    await published(store)
    events: list[Event] = []
    while True:
        page = await read_feed(store, tuple(types), 1, after, 100)
        events += page.events
        after = page.position
        if not page.events and page.is_last:
            return events


def plain(event: Event) -> Record:
    """Return an event as a client decodes it."""
    record: Record = decode(encode(event))
    return record


def contradictions(events: Iterable[Record], resources: dict[str, Record]) -> Iterator[str]:
    """Yield what is wrong with the ``events`` of a whole store, whose ``resources`` are these now.

    Of a resource, ``resources`` may leave members out.

    The feed tells every change once and in order if it has no gaps, each change begins with what
    the change before it left, and the last one leaves what is in the store.
    """
    told: dict[str, Record] = {}
    seen: set[str] = set()
    events = list(events)
    for number, (event, following) in enumerate(zip_longest(events, events[1:]), 1):
        name = f"{event['type']} {event['sequence']} of {event['resource']}"
        if event["sequence"] != number:
            yield f"{name} is at place {number}"
        if event["id"] in seen:
            yield f"{name} is there twice"
        seen.add(event["id"])
        known, data = told.pop(event["resource"], None), event["data"]
        if event["type"] not in _END:
            told[event["resource"]] = data
        if _before(event) != known:
            yield f"{name} begins with {_before(event)}, and it was {known}"
        pet = f"pet/{data.get('petId')}"
        moved = (following or {}).get("type"), (following or {}).get("resource")
        before = event.get("previous", {}).get("status")  # after a sale its animal is anybody's
        if event["type"] in _MOVE_A_PET and before != "delivered" and moved != ("pet.updated", pet):
            yield f"{name} is followed by {moved}"
    for resource in sorted(told.keys() | resources.keys()):
        is_known = resource in told and resource in resources
        if not is_known or told[resource] != told[resource] | resources[resource]:
            ends = f"the feed ends with {told.get(resource)}"
            yield f"{resource} is {resources.get(resource)}, and {ends}"


def _before(event: Record) -> Record | None:
    """Return what a resource was before an event, which tells it in full."""
    if "previous" not in event and event["type"] not in _END:
        return None
    before = event["data"] | event.get("previous", {})
    return {name: value for name, value in before.items() if value is not None}
