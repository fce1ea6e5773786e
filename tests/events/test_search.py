"""Searches of the feed: each event once and in order, at the cost of what is wanted alone."""

from collections.abc import Collection

import pytest

from petstore.clock import DAY, Milliseconds
from petstore.databases.contract import Store, Unit
from petstore.databases.pages import LAST_ID
from petstore.errors import CursorExpired
from petstore.events.model import ADMIN_EVENT_TYPES, EVENT_TYPES, START, Author, NewEvent, Position
from petstore.events.search import EventFilter, FeedPage, read_events
from petstore.events.store import last_position, newest_position, record
from support.cases import case
from support.changes import NOW
from support.history import published
from support.retention import prune_table
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

SEARCHED = 2000
ADMIN = EventFilter(EVENT_TYPES, (1, -1))
LONG = EventFilter(ADMIN_EVENT_TYPES, (1, -1))


def told(resource: str = "pet/1", kind: str = "pet.updated", key_id: int | None = None) -> NewEvent:
    return NewEvent(kind, resource, {"id": 1}, {"name": "Rex"}, key_id)  # type: ignore[arg-type]


def recorded(*events: NewEvent, now: Milliseconds = NOW) -> Unit[None]:
    for first in range(0, len(events), 100):
        yield record(now, *events[first : first + 100], by=Author("person/2", "r-1"))


async def happened(store: Store, *events: NewEvent) -> None:
    await store.write(recorded(*events))
    await published(store)


def of(resource: str = "", actor: str = "", types: Collection[str] = EVENT_TYPES) -> EventFilter:
    return EventFilter(types, (1, 1), resource, actor)


def sequences(page: FeedPage) -> list[int]:
    return [event.sequence for event in page.events]


async def walked(
    store: Store,
    wanted: EventFilter,
    start: Position | None = None,
    limit: int = 2,
    *,
    newest_first: bool = False,
) -> list[int]:
    found: list[int] = []
    while True:
        page = await read_events(store, wanted, start, limit, newest_first=newest_first)
        found += sequences(page)
        start = page.position
        if page.is_last:
            return found


async def test_events_are_read_in_either_order_over_all_pages(store: Store) -> None:
    resources = ["pet/1", "pet/11", "pet/1", "order/1", "pet/1", "pet/2", "pet/1", "pet/1"]
    await happened(store, *map(told, resources))
    for wanted, expected in (
        (of(), [*range(1, 9)]),
        (of("pet/1"), [1, 3, 5, 7, 8]),
        (of("pet/3"), []),
        (of("order/1", "person/2"), [4]),
        (of("order/1", "key/2"), []),
        (of(actor="person/2"), [*range(1, 9)]),
        (of(actor="person/3"), []),
    ):
        for limit in (1, 2, 3, 4, 5, 8, 100):
            with case(wanted, limit):
                assert await walked(store, wanted, limit=limit) == expected
                assert await walked(store, wanted, limit=limit, newest_first=True) == expected[::-1]


async def test_an_empty_page_leads_behind_the_newest_event_of_the_feed(store: Store) -> None:
    """So the cursor of a resource that never changes does not expire."""
    wanted = of("pet/1")
    assert await read_events(store, wanted, None, 2) == ([], START, True)
    await happened(store, told("pet/2"), told("pet/2"))
    page = await read_events(store, wanted, START, 2)
    assert page == FeedPage([], await newest_position(store), is_last=True)
    assert await read_events(store, wanted, page.position, 2) == page
    await happened(store, told("pet/1"))
    assert await walked(store, wanted, page.position) == [3]


async def test_a_search_looks_at_a_bounded_number_of_events(store: Store) -> None:
    deleted = told(kind="pet.deleted")
    await happened(store, deleted, *[told()] * (SEARCHED + 4), deleted)
    oldest, newest = await last_position(store, 1), await newest_position(store)
    for wanted in (of("pet/1", types=["pet.deleted"]), of(types=["pet.deleted"])):
        for start, newest_first, end, found in (
            (oldest, False, SEARCHED + 1, SEARCHED + 6),
            (newest, True, 6, 1),
        ):
            first = await read_events(store, wanted, start, 2, newest_first=newest_first)
            assert (first.events, first.position.sequence, first.is_last) == ([], end, False)
            second = await read_events(store, wanted, first.position, 2, newest_first=newest_first)
            assert (sequences(second), second.is_last) == ([found], True)


async def test_the_cursor_of_a_deleted_event_or_another_history_is_expired(store: Store) -> None:
    await happened(store, told(), told("pet/2"), told())
    first, second = [await last_position(store, sequence) for sequence in (1, 2)]
    await store.write(do("DELETE FROM events WHERE sequence < 2"))
    for wanted, kept in ((of(), [2, 3]), (of("pet/1"), [3])):
        for position in (START, first, Position(3, bytes(4)), Position(9, bytes(4))):
            with pytest.raises(CursorExpired, match=r"^cursor: the events after it are no longer"):
                await read_events(store, wanted, position, 2)
        assert await walked(store, wanted, second) == [3]
        assert await walked(store, wanted) == kept


async def test_a_place_of_another_history_is_expired_backwards_too(store: Store) -> None:
    await happened(store, told(), told(), told())
    third = await last_position(store, LAST_ID)
    for position in (Position(3, bytes(4)), Position(9, third.mark)):
        with pytest.raises(CursorExpired):
            await walked(store, of(), position, newest_first=True)
    await store.write(do("DELETE FROM events WHERE sequence < 3"))
    assert await walked(store, of(), Position(2, bytes(4)), newest_first=True) == []


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


async def test_events_of_administrators_outlive_the_others_and_nobody_else_sees_them(
    aged: Store,
) -> None:
    assert await walked(aged, ADMIN, newest_first=True) == [7, 6, 4, 2]
    for wanted in (LONG, ADMIN._replace(resource="key/1"), ADMIN._replace(types=["key.updated"])):
        assert 2 in await walked(aged, wanted, newest_first=True)
        assert 2 in await walked(aged, wanted)
    assert await walked(aged, LONG) == [2, 4, 7]
    for key_ids in ((1, 1), (1, -2)):
        wanted = EventFilter(EVENT_TYPES, key_ids)
        assert await walked(aged, wanted, newest_first=True) == [6]
        for others in ({"resource": "key/1"}, {"types": ["key.updated"]}):
            assert await walked(aged, wanted._replace(**others), newest_first=True) == []
            assert await walked(aged, wanted._replace(**others)) == []


async def test_a_feed_begins_where_nothing_is_missing(aged: Store) -> None:
    before = await last_position(aged, 4)
    assert before.sequence == 4
    for wanted, kept in ((ADMIN, [6, 7]), (ADMIN._replace(actor="person/2"), [6, 7]), (of(), [6])):
        assert await walked(aged, wanted) == kept
        for position in (START, before):
            with pytest.raises(CursorExpired):
                await read_events(aged, wanted, position, 2)
    assert await walked(aged, LONG, before) == [7]
    with pytest.raises(CursorExpired):
        await read_events(aged, LONG, START, 2)
