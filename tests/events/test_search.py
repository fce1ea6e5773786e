"""Searches of the feed: each event once and in order, at the cost of what is wanted alone."""

from collections.abc import Collection
from typing import Any

import pytest

from petstore.clock import DAY, Milliseconds
from petstore.databases.contract import Store, Unit
from petstore.errors import CursorExpired
from petstore.events.model import (
    ADMIN_EVENT_TYPES,
    EVENT_TYPES,
    START,
    Author,
    Event,
    NewEvent,
    Position,
)
from petstore.events.search import EventFilter, FeedPage, read_events
from petstore.events.store import last_position, newest_position, record
from support.changes import NOW
from support.history import published, read_feed
from support.retention import prune_table
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

SEARCHED = 2000
GRACE = Author("person/2", "r-1")


def told(resource: str = "pet/1", kind: str = "pet.updated", key_id: int | None = None) -> NewEvent:
    return NewEvent(kind, resource, {"id": 1}, {"name": "Rex"}, key_id)  # type: ignore[arg-type]


def recorded(*events: NewEvent, by: Author = GRACE, now: Milliseconds = NOW) -> Unit[None]:
    for first in range(0, len(events), 100):
        yield record(now, *events[first : first + 100], by=by)


async def happened(store: Store, *events: NewEvent) -> None:
    """Put events into the feed."""
    await store.write(recorded(*events))
    await published(store)


async def walked(
    store: Store,
    resource: str = "pet/1",
    after: Position | None = None,
    types: Collection[str] = EVENT_TYPES,
    limit: int = 2,
    actor: str = "",
) -> list[Event]:
    return await followed(store, EventFilter(types, (1, 1), resource, actor), after, limit)


async def followed(
    store: Store, wanted: EventFilter, after: Position | None = None, limit: int = 2
) -> list[Event]:
    events: list[Event] = []
    while True:
        page = await read_events(store, wanted, after, limit)
        events += page.events
        after = page.position
        if page.is_last:
            return events


def sequences(found: Any) -> list[Any]:
    return [event.sequence for event in found]


# In the order of the feed


async def test_the_events_of_a_resource_are_read_in_order_over_all_pages(store: Store) -> None:
    resources = ["pet/1", "pet/11", "pet/1", "order/1", "pet/1", "pet/2", "pet/1", "pet/1"]
    await happened(store, *map(told, resources))
    assert sequences(await walked(store)) == [1, 3, 5, 7, 8]
    for limit in (1, 3, 5, 100):
        assert sequences(await walked(store, limit=limit)) == [1, 3, 5, 7, 8]
    assert sequences(await walked(store, "order/1")) == [4]
    assert await walked(store, "pet/3") == []


async def test_an_empty_page_leads_behind_the_newest_event_of_the_feed(store: Store) -> None:
    """So the cursor of a resource that never changes does not expire."""
    assert await read_feed(store, EVENT_TYPES, 1, None, 2, "pet/1") == ([], START, True)
    await happened(store, told("pet/2"), told("pet/2"))
    page = await read_feed(store, EVENT_TYPES, 1, START, 2, "pet/1")
    assert page == FeedPage([], await newest_position(store), is_last=True)
    again = await read_feed(store, EVENT_TYPES, 1, page.position, 2, "pet/1")
    assert again == ([], page.position, True)
    await happened(store, told("pet/1"))
    assert sequences(await walked(store, after=page.position)) == [3]


async def test_a_search_looks_at_a_bounded_number_of_events_of_the_resource(store: Store) -> None:
    await happened(store, *[told()] * (SEARCHED + 5), told(kind="pet.deleted"))
    first = await read_feed(store, ["pet.deleted"], 1, None, 2, "pet/1")
    assert (first.events, first.position.sequence, first.is_last) == ([], SEARCHED, False)
    second = await read_feed(store, ["pet.deleted"], 1, first.position, 2, "pet/1")
    assert (sequences(second.events), second.is_last) == ([SEARCHED + 6], True)


async def test_the_cursor_of_a_deleted_event_is_expired_for_a_resource_too(store: Store) -> None:
    await happened(store, told(), told("pet/2"), told())
    first = (await read_feed(store, EVENT_TYPES, 1, None, 1, "pet/1")).position
    await store.write(do("DELETE FROM events WHERE sequence < 3"))
    for position in (START, first, Position(9, bytes(4))):
        with pytest.raises(CursorExpired):
            await read_feed(store, EVENT_TYPES, 1, position, 2, "pet/1")
    assert sequences(await walked(store)) == [3]


# The newest first


async def newest(
    store: Store,
    wanted: EventFilter,
    before: Position | None = None,
    limit: int = 2,
) -> list[Event]:
    events: list[Event] = []
    while True:
        page = await read_events(store, wanted, before, limit, newest_first=True)
        events += page.events
        before = page.position
        if page.is_last:
            return events


def of(resource: str = "", actor: str = "", types: Collection[str] = EVENT_TYPES) -> EventFilter:
    return EventFilter(types, (1, 1), resource, actor)


async def test_the_newest_events_come_first_over_all_pages(store: Store) -> None:
    resources = ["pet/1", "pet/11", "pet/1", "order/1", "pet/1", "pet/2", "pet/1", "pet/1"]
    await happened(store, *map(told, resources))
    for limit in (1, 3, 4, 8, 100):
        assert sequences(await newest(store, of(), limit=limit)) == [8, 7, 6, 5, 4, 3, 2, 1]
        assert sequences(await newest(store, of("pet/1"), limit=limit)) == [8, 7, 5, 3, 1]
        assert sequences(await newest(store, of(actor="person/2"), limit=limit)) == [
            *range(8, 0, -1)
        ]
    assert await newest(store, of(actor="person/3")) == []
    assert sequences(await newest(store, of("order/1", "person/2"))) == [4]
    assert await newest(store, of("order/1", "key/2")) == []


async def test_a_search_backwards_looks_at_a_bounded_number_of_events(store: Store) -> None:
    await happened(store, told(kind="pet.deleted"), *[told()] * (SEARCHED + 5))
    for wanted in (of("pet/1", types=["pet.deleted"]), of(types=["pet.deleted"])):
        first = await read_events(store, wanted, None, 2, newest_first=True)
        assert (first.events, first.position.sequence, first.is_last) == ([], 7, False)
        second = await read_events(store, wanted, first.position, 2, newest_first=True)
        assert (sequences(second.events), second.is_last) == ([1], True)


async def test_a_place_of_another_history_is_expired_backwards_too(store: Store) -> None:
    await happened(store, told(), told(), told())
    third = (await read_events(store, of(), None, 1, newest_first=True)).position
    for position in (Position(3, bytes(4)), Position(9, third.mark)):
        with pytest.raises(CursorExpired):
            await newest(store, of(), position)
    await store.write(do("DELETE FROM events WHERE sequence < 3"))
    assert await newest(store, of(), Position(2, bytes(4))) == []


# The events of administrators, which are kept for longer


ADMIN = EventFilter(EVENT_TYPES, (1, -1))
LONG = EventFilter(ADMIN_EVENT_TYPES, (1, -1))


@pytest.fixture
async def aged(store: Store) -> Store:
    """A store of which ordinary events before the one at 6 are deleted."""
    keys = [told(f"key/{number}", "key.updated", -1) for number in (1, 2)]
    await happened(store, told(), keys[0], told(), keys[1], told())
    await store.write(recorded(told(), now=NOW + DAY))
    await happened(store, keys[0])
    while await store.write(prune_table("events", NOW + 1)):
        pass
    return store


async def test_events_of_administrators_outlive_the_others(aged: Store) -> None:
    assert sequences(await newest(aged, ADMIN)) == [7, 6, 4, 2]
    for wanted in (LONG, ADMIN._replace(resource="key/1"), ADMIN._replace(types=["key.updated"])):
        assert 2 in sequences(await newest(aged, wanted))
        assert 2 in sequences(await followed(aged, wanted))
    assert sequences(await followed(aged, LONG)) == [2, 4, 7]


async def test_a_feed_begins_where_nothing_is_missing(aged: Store) -> None:
    assert sequences(await followed(aged, ADMIN)) == [6, 7]
    assert sequences(await followed(aged, ADMIN._replace(actor="person/2"))) == [6, 7]
    assert sequences(await followed(aged, of())) == [6]


async def test_a_place_before_a_gap_is_expired_if_something_is_missing(aged: Store) -> None:
    before = await last_position(aged, 4)
    assert before.sequence == 4
    for wanted in (ADMIN, of(), ADMIN._replace(actor="person/2")):
        with pytest.raises(CursorExpired):
            await read_events(aged, wanted, before, 2)
    assert sequences(await followed(aged, LONG, before)) == [7]
    for wanted in (ADMIN, LONG, of()):
        with pytest.raises(CursorExpired):
            await read_events(aged, wanted, START, 2)


async def test_nobody_else_sees_the_events_of_administrators(aged: Store) -> None:
    for key_ids in ((1, 1), (1, -2)):
        wanted = EventFilter(EVENT_TYPES, key_ids)
        assert sequences(await newest(aged, wanted)) == [6]
        for others in ({"resource": "key/1"}, {"types": ["key.updated"]}):
            assert await newest(aged, wanted._replace(**others)) == []
            assert await followed(aged, wanted._replace(**others)) == []
