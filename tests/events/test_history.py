"""The events of one resource: each once and in order, at the cost of these events alone."""

import asyncio
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import pytest

from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.databases.sqlite import SqliteStore
from petstore.errors import CursorExpired
from petstore.events.history import (
    ON_A_PAGE,
    PastEvents,
    list_all,
    orders_before,
    read_latest,
    read_resource,
)
from petstore.events.model import EVENT_TYPES, START, Author, Event, NewEvent, Position
from petstore.events.store import FeedPage, newest_position, record
from petstore.keys.store import unconditional
from petstore.orders.model import OrderCreate, OrderPatch
from petstore.orders.store import place_order, update_order
from petstore.pets.model import NewPet
from support.changes import NOW, create_pets
from support.history import published
from support.retention import prune_table
from support.stores import do, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

SEARCHED = 2000
BELLA = NewPet("Bella", 1, "available")
GRACE = Author("person/2", "r-1")


def told(resource: str = "pet/1", kind: str = "pet.updated", key_id: int | None = None) -> NewEvent:
    return NewEvent(kind, resource, {"id": 1}, {"name": "Rex"}, key_id)  # type: ignore[arg-type]


def recorded(*events: NewEvent) -> Unit[None]:
    for first in range(0, len(events), 100):
        yield record(NOW, *events[first : first + 100], by=GRACE)


async def happened(store: Store, *events: NewEvent, is_listed: bool = True) -> None:
    """Put events into the feed; if not ``is_listed``, they were committed a moment ago."""
    await store.write(recorded(*events))
    await published(store)
    if is_listed and isinstance(store, SqliteStore):
        await list_all(store)


async def walked(
    store: Store,
    resource: str = "pet/1",
    after: Position | None = None,
    types: Collection[str] = EVENT_TYPES,
    limit: int = 2,
) -> list[Event]:
    """Follow the pages of a resource to the end."""
    events: list[Event] = []
    while True:
        page = await read_resource(store, types, 1, after, limit, resource)
        events += page.events
        after = page.position
        if page.is_last:
            return events


def sequences(found: Any) -> list[Any]:
    return [event.sequence for event in found]


async def latest(store: Store, resource: str = "pet/1", before: int | None = None) -> PastEvents:
    return await read_latest(store, resource, before)


# In the order of the feed


@pytest.mark.parametrize("is_listed", [True, False])
async def test_the_events_of_a_resource_are_read_in_order_over_all_pages(
    store: Store,
    is_listed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    resources = ["pet/1", "pet/11", "pet/1", "order/1", "pet/1", "pet/2", "pet/1", "pet/1"]
    await happened(store, *map(told, resources[:4]))
    await happened(store, *map(told, resources[4:]), is_listed=is_listed)
    assert sequences(await walked(store)) == [1, 3, 5, 7, 8]
    for limit in (1, 3, 5, 100):
        assert sequences(await walked(store, limit=limit)) == [1, 3, 5, 7, 8]
    assert sequences(await walked(store, "order/1")) == [4]
    assert await walked(store, "pet/3") == []


async def test_an_empty_page_leads_behind_the_newest_event_of_the_feed(store: Store) -> None:
    """So the cursor of a resource that never changes does not expire."""
    assert await read_resource(store, EVENT_TYPES, 1, None, 2, "pet/1") == ([], START, True)
    await happened(store, told("pet/2"), told("pet/2"))
    page = await read_resource(store, EVENT_TYPES, 1, START, 2, "pet/1")
    assert page == FeedPage([], await newest_position(store), is_last=True)
    again = await read_resource(store, EVENT_TYPES, 1, page.position, 2, "pet/1")
    assert again == ([], page.position, True)
    await happened(store, told("pet/1"), is_listed=False)
    assert sequences(await walked(store, after=page.position)) == [3]


async def test_the_events_of_a_resource_are_filtered_by_type_and_key(store: Store) -> None:
    events = [told(), told(kind="pet.deleted"), told(key_id=2), told(key_id=1), told()]
    await happened(store, *events[:4])
    await happened(store, *events[4:], is_listed=False)
    assert sequences(await walked(store)) == [1, 2, 4, 5]
    assert sequences(await walked(store, types=["pet.deleted"])) == [2]
    assert await walked(store, types=[]) == []


async def test_a_search_looks_at_a_bounded_number_of_events_of_the_resource(store: Store) -> None:
    await happened(store, *[told()] * (SEARCHED + 5), told(kind="pet.deleted"))
    first = await read_resource(store, ["pet.deleted"], 1, None, 2, "pet/1")
    assert (first.events, first.position.sequence, first.is_last) == ([], SEARCHED, False)
    second = await read_resource(store, ["pet.deleted"], 1, first.position, 2, "pet/1")
    assert (sequences(second.events), second.is_last) == ([SEARCHED + 6], True)


async def test_a_search_looks_at_a_bounded_number_of_events_that_are_new(store: Store) -> None:
    await happened(store, told())
    await happened(store, *[told("pet/2")] * (SEARCHED + 5), told(), is_listed=False)
    first = await read_resource(store, EVENT_TYPES, 1, None, 5, "pet/1")
    if isinstance(store, SqliteStore):
        assert (sequences(first.events), first.position.sequence) == ([1], SEARCHED + 1)
        assert not first.is_last
    assert sequences(await walked(store, limit=5)) == [1, SEARCHED + 7]


async def test_the_cursor_of_a_deleted_event_is_expired_for_a_resource_too(store: Store) -> None:
    await happened(store, told(), told("pet/2"), told())
    first = (await read_resource(store, EVENT_TYPES, 1, None, 1, "pet/1")).position
    await store.write(do("DELETE FROM events WHERE sequence < 3"))
    for position in (START, first, Position(9, bytes(4))):
        with pytest.raises(CursorExpired):
            await read_resource(store, EVENT_TYPES, 1, position, 2, "pet/1")
    assert sequences(await walked(store)) == [3]


# The newest first


async def test_the_newest_events_come_first_and_earlier_ones_follow(store: Store) -> None:
    await happened(store, *[told("pet/1"), told("pet/2")] * (ON_A_PAGE + 1))
    await happened(store, told("pet/1"), is_listed=False)
    first = await latest(store)
    assert sequences(first.events)[:3] == [43, 41, 39]
    assert len(first.events) == ON_A_PAGE
    assert first.earlier is not None
    second = await latest(store, before=first.earlier)
    assert (sequences(second.events), second.earlier) == ([3, 1], None)
    assert await latest(store, "pet/3") == ([], None)


async def test_a_full_last_page_has_no_earlier_events(store: Store) -> None:
    await happened(store, *[told()] * ON_A_PAGE)
    page = await latest(store)
    assert (len(page.events), page.earlier) == (ON_A_PAGE, None)


async def test_a_past_event_has_what_was_recorded(store: Store) -> None:
    await happened(store, told())
    ((event,), _) = await latest(store)
    assert event == (
        *(1, "pet.updated", NOW, "pet/1", {"id": 1}, {"name": "Rex"}),
        *("person/2", "r-1"),
    )
    await store.write(do("UPDATE events SET previous = NULL, actor = NULL, request_id = NULL"))
    ((event,), _) = await latest(store)
    assert (event.previous, event.actor, event.request_id) == (None, None, None)


async def test_a_change_is_in_the_history_as_soon_as_it_is_committed(store: Store) -> None:
    await happened(store, *[told()] * ON_A_PAGE)
    await store.write(recorded(told("pet/2"), told(kind="pet.deleted"), told()))
    newest, deleted, third, *_ = (await latest(store)).events
    assert (newest.type, deleted.type, third.sequence) == ("pet.updated", "pet.deleted", ON_A_PAGE)
    before = await latest(store, before=ON_A_PAGE)
    assert sequences(before.events)[0] == ON_A_PAGE - 1


# Which order changed an animal


async def test_the_order_that_changed_an_animal_is_the_event_before_it(store: Store) -> None:
    await store.write(create_pets([BELLA, BELLA]))
    await store.write(place_order(OrderCreate(2), NOW, 0))
    await store.write(update_order(1, OrderPatch(status="approved"), NOW, unconditional))
    await store.write(update_order(1, OrderPatch(status="delivered"), NOW, unconditional))
    await published(store)
    events = (await latest(store, "pet/2")).events
    found = await orders_before(store, events)
    assert {sequence: (order.type, order.data["id"]) for sequence, order in found.items()} == {
        4: ("order.placed", 1),
        7: ("order.delivered", 1),
    }
    assert await orders_before(store, (await latest(store, "pet/1")).events) == {}
    of_another = [event._replace(resource="pet/1") for event in events]
    assert await orders_before(store, of_another) == {}
    unpublished = [event._replace(sequence=None) for event in events]
    assert await orders_before(store, unpublished) == {}


# The list of the events of each resource, which SQLite alone has


@pytest.fixture
async def file(database: Path) -> AsyncIterator[Store]:
    """A store in a SQLite file."""
    async with open_store(database) as store:
        yield store


async def listed(file: Store) -> list[Row]:
    select = "SELECT resource, sequence FROM event_resources ORDER BY resource, sequence"
    return await file.read(Statement(select))


async def test_new_events_are_listed_in_batches_and_once(file: Store) -> None:
    await happened(file, *[told()] * 1100, told("pet/2"))
    assert await listed(file) == [
        ("", 1101),
        *(("pet/1", number) for number in range(1, 1101)),
        ("pet/2", 1101),
    ]
    await list_all(file)
    assert len(await listed(file)) == 1102


async def test_two_processes_list_each_event_once(database: Path, file: Store) -> None:
    await happened(file, *[told()] * 1100, is_listed=False)
    async with open_store(database) as other:
        await asyncio.gather(*map(list_all, (file, other) * 3))
    assert len(await listed(file)) == 1101


async def test_events_that_are_deleted_are_listed_no_more(file: Store) -> None:
    await happened(file, *[told()] * 3)
    await happened(file, told("pet/2"), is_listed=False)
    assert await file.write(prune_table("events", NOW + 1)) == 3
    assert await listed(file) == [("", 3)]
    await list_all(file)
    assert await listed(file) == [("", 4), ("pet/2", 4)]


async def test_thousands_of_new_events_hide_only_those_between_for_a_moment(file: Store) -> None:
    await happened(file, told())
    await happened(file, told(), *[told("pet/2")] * SEARCHED, told(), is_listed=False)
    assert sequences((await latest(file)).events) == [SEARCHED + 3, 1]
    await list_all(file)
    assert sequences((await latest(file)).events) == [SEARCHED + 3, 2, 1]
