"""What a feed of events says, checked as a whole: each change is in it once, in its order."""

from collections.abc import Collection, Iterable, Iterator
from itertools import zip_longest
from typing import Any, TypeAlias

from msgspec.json import decode, encode

from petstore.databases.contract import Reader, Statement, Store
from petstore.databases.postgres import PostgresStore
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, Event, Position
from petstore.events.search import EventFilter, FeedPage, read_events
from petstore.events.store import publish_all
from support.stores import do
from support.waiting import eventually

Record: TypeAlias = dict[str, Any]

_END = {"pet.deleted", "category.deleted"}
_MOVE_A_PET = {"order.placed", "order.delivered", "order.cancelled", "order.lapsed"}


async def published(store: Store) -> None:
    """Give every committed event its place, or wait until the service has done so."""
    if isinstance(store, PostgresStore):
        pending = Statement("SELECT 1 FROM events_outbox LIMIT 1")

        async def is_published() -> bool:
            await publish_all(store)
            return not await store.read(pending)

        await eventually(is_published)


async def read_feed(
    store: Reader,
    types: Collection[str],
    key_id: int,
    after: Position | None,
    limit: int,
    resource: str = "",
) -> FeedPage:
    """Return a page of the feed, or of one resource, as a key that is no administrator sees it."""
    wanted = EventFilter(types, (key_id, key_id), resource)
    return await read_events(store, wanted, after, limit)


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


async def forget_keys(store: Store) -> None:
    """Delete the events of keys and people, so that those of a test are numbered from 1."""
    await published(store)
    await store.write(do("DELETE FROM events WHERE key_id < 0"))


async def told_of(store: Store, resource: str = "") -> list[Record]:
    """Return the events of a key or a person, or of all of them, as administrators read them."""
    await published(store)
    wanted = EventFilter(ADMIN_EVENT_TYPES, (-2, -1), resource)
    page = await read_events(store, wanted, None, 1000)
    assert page.is_last
    return [plain(event) for event in page.events]


async def acts_on(store: Store, resource: str) -> list[tuple[str, str, Any]]:
    """Return by whom, what was done to a key or a person, and the members before that."""
    return [
        (
            "/".join(map(str, event["actor"].values())),
            event["type"].partition(".")[2],
            event.get("previous"),
        )
        for event in await told_of(store, resource)
    ]


def plain(event: Event) -> Record:
    record: Record = decode(encode(event))
    return record


def contradictions(events: Iterable[Record], resources: dict[str, Record]) -> Iterator[str]:
    """Yield what is wrong with the ``events`` of a whole store, whose ``resources`` are these now.

    Of a resource, ``resources`` may leave members out.

    The feed tells every change once and in order if its sequences ascend, each change begins with
    what the change before it left, and the last one leaves what is in the store. Events of keys and
    people are left out: ``events`` are those that others see.
    """
    told: dict[str, Record] = {}
    seen: set[str] = set()
    events, last = list(events), 0
    for event, following in zip_longest(events, events[1:]):
        name = f"{event['type']} {event['sequence']} of {event['resource']}"
        if event["sequence"] <= last:
            yield f"{name} comes after {last}"
        last = event["sequence"]
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
        before = event.get("previous", {}).get("status")  # after a sale its pet is anybody's
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
