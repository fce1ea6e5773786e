"""What everybody did, the newest first: found with bounded work, and each thing once."""

from typing import Any

import pytest

from petstore.clock import DAY, HOUR, MINUTE, SECOND
from petstore.databases.contract import Row, Statement, Store, Unit
from petstore.events.model import EVENT_TYPES, Author, NewEvent
from petstore.events.store import record
from petstore.keys.activity import (
    ON_A_PAGE,
    ActivityFilter,
    ActivityPage,
    read_activity,
)
from petstore.keys.history import CallerChange
from support.changes import NOW
from support.history import published
from support.keys import change, issue
from support.manual_clock import ManualClock
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

EVERYTHING = ActivityFilter(EVENT_TYPES, "production")
EVENTS = ActivityFilter(EVENT_TYPES, None)
CHANGES = ActivityFilter((), "production")
WINDOW, WINDOWS = 2000, 10
GRACE = Author("person/2")


def told(pet: int = 1, kind: str = "pet.updated", key_id: int | None = None) -> NewEvent:
    return NewEvent(kind, f"pet/{pet}", {"id": pet}, {}, key_id)  # type: ignore[arg-type]


async def happened(store: Store, *events: NewEvent, at: int = NOW, by: Author = GRACE) -> None:
    def recorded() -> Unit[None]:
        for first in range(0, len(events), 100):
            yield record(at, *events[first : first + 100], by=by)

    await store.write(recorded())
    await published(store)


def shown(page: ActivityPage) -> list[str]:
    """Return what a page has: the resources of events, and the ids of keys."""
    return [
        f"key/{done.caller_id}" if isinstance(done, CallerChange) else done.resource
        for done, _ in page.entries
    ]


async def walked(store: Store, wanted: ActivityFilter = EVERYTHING) -> list[str]:
    """Follow the pages to the end."""
    found: list[str] = []
    before = None
    while True:
        page = await read_activity(store, wanted, before)
        found += shown(page)
        if page.following is None:
            return found
        before = page.following


async def test_an_empty_store_has_no_activity(store: Store) -> None:
    assert await read_activity(store, EVERYTHING) == ActivityPage([], None)


async def test_events_and_changes_of_keys_are_merged_by_their_times(
    store: Store, clock: ManualClock
) -> None:
    for number in range(1, 31):
        await happened(store, told(number), at=clock())
        clock.advance(1)
        if number % 2:
            await issue(store, clock)
            clock.advance(1)
    expected = []
    for number in range(1, 31):
        expected += [f"pet/{number}", *([f"key/{number // 2 + 1}"] if number % 2 else [])]
    assert await walked(store) == expected[::-1]
    first = await read_activity(store, EVERYTHING)
    assert (len(first.entries), first.following) == (ON_A_PAGE, (18, 9))
    assert await walked(store, EVENTS) == [f"pet/{number}" for number in range(30, 0, -1)]
    assert await walked(store, CHANGES) == [f"key/{number}" for number in range(15, 0, -1)]


async def test_the_activity_of_one_author_is_found(store: Store, clock: ManualClock) -> None:
    admin = await issue(store, clock)
    await happened(store, told(1), by=Author("key/1"))
    await happened(store, told(2), by=Author("key/11"))
    await happened(store, told(3), by=Author("person/1"))
    await happened(store, told(4), by=Author("service"))
    await store.write(do("UPDATE api_key_events SET actor = 'key 1'"))
    await change(store, clock, admin.id, name="other")
    assert await walked(store, EVERYTHING._replace(by="key/1")) == ["pet/1", "key/1"]
    assert await walked(store, EVERYTHING._replace(by="person/1")) == ["pet/3"]
    assert await walked(store, EVERYTHING._replace(by="person/9")) == []


async def test_the_activity_of_a_day_is_found_among_others(
    store: Store, clock: ManualClock
) -> None:
    for number in range(1, 100):
        await happened(store, told(number), at=clock())
        await issue(store, clock)
        clock.advance(HOUR / SECOND)
    since = ManualClock()() + 24 * HOUR
    wanted = EVERYTHING._replace(since=since, until=since + DAY)
    expected = [name for number in range(48, 24, -1) for name in (f"pet/{number}", f"key/{number}")]
    assert await walked(store, wanted) == expected
    assert await walked(store, wanted._replace(since=since - 999 * DAY, until=since - DAY)) == []


async def test_a_clock_that_is_some_seconds_late_hides_nothing(store: Store) -> None:
    for number, at in enumerate((10, 5, 11, 6, 12), 1):
        await happened(store, told(number), at=NOW + at * SECOND)
    wanted = EVENTS._replace(since=NOW + 10 * SECOND, until=NOW + 12 * SECOND)
    assert await walked(store, wanted) == ["pet/3", "pet/1"]


async def test_only_events_that_everybody_may_read_and_of_these_types_are_found(
    store: Store,
) -> None:
    await happened(store, told(1), told(2, "key.banned", key_id=1), told(3, "pet.deleted"))
    assert await walked(store, EVENTS) == ["pet/3", "pet/1"]
    assert await walked(store, EVENTS._replace(types=["pet.deleted"])) == ["pet/3"]
    assert await walked(store, EVENTS._replace(types=[])) == []


async def test_changes_of_keys_of_another_environment_are_not_found(
    store: Store, clock: ManualClock
) -> None:
    for environment in ("production", "staging", "production"):
        await issue(store, clock, environment=environment)
    assert await walked(store, CHANGES) == ["key/3", "key/1"]
    assert await walked(store, CHANGES._replace(environment="staging")) == ["key/2"]


async def test_a_change_has_what_was_recorded(store: Store, clock: ManualClock) -> None:
    await issue(store, clock, name="Till")
    await store.write(do("UPDATE api_keys SET role = 'clerk'"))
    ((done, others),) = (await read_activity(store, CHANGES)).entries
    assert isinstance(done, CallerChange)
    assert (done.action, done.caller_id, done.name, done.role) == ("created", 1, "Till", "clerk")
    assert (done.actor, done.at, others) == ("the operator", clock(), 0)
    assert done.changes["name"] == {"before": None, "after": "Till"}


async def test_what_one_request_did_many_times_is_one_entry(store: Store) -> None:
    request = Author("person/2", "r-1")
    await happened(store, told(1), by=Author("person/2", "r-0"))
    await happened(store, *[told(number, "pet.created") for number in range(2, 5)], by=request)
    await happened(store, told(5, "pet.deleted"), by=request)
    await happened(store, told(6), told(7))  # without a request, each is its own
    page = await read_activity(store, EVENTS)
    assert shown(page) == ["pet/7", "pet/6", "pet/5", "pet/4", "pet/1"]
    assert [entry.others for entry in page.entries] == [0, 0, 0, 2, 0]


async def test_thousands_of_events_of_a_request_take_a_few_entries(store: Store) -> None:
    request = Author("person/2", "r-1")
    await happened(store, told(1))
    await happened(store, *[told(2, "pet.created")] * 2500, by=request)
    page = await read_activity(store, EVENTS)
    assert sum(1 + entry.others for entry in page.entries) == 2501
    assert len(page.entries) <= 5


class Counted:
    """A store that counts the rows it reads, and the queries."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.queries = 0

    async def read(self, statement: Statement) -> list[Row]:
        self.queries += 1
        return await self._store.read(statement)


async def test_a_rare_entry_is_found_by_searching_on(store: Store) -> None:
    await happened(store, told(1, "pet.deleted"))
    await happened(store, *[told(2)] * (WINDOW * WINDOWS + 100))
    counted: Any = Counted(store)
    wanted = EVENTS._replace(types=["pet.deleted"])
    page = await read_activity(counted, wanted)
    assert counted.queries <= WINDOWS + 5
    assert (page.entries, page.following) == ([], (102, 0))
    assert shown(await read_activity(store, wanted, page.following)) == ["pet/1"]


async def test_a_kind_that_is_not_searched_to_its_end_does_not_let_older_ones_come_first(
    store: Store, clock: ManualClock
) -> None:
    await happened(store, told(1), at=clock())
    clock.advance(60)
    await issue(store, clock)
    clock.advance(60)
    await happened(store, *[told(2, "pet.deleted")] * (WINDOW * WINDOWS + 100), at=clock())
    wanted = EVERYTHING._replace(types=["pet.updated"])
    first = await read_activity(store, wanted)
    assert shown(first) == []
    assert await walked(store, wanted) == ["key/1", "pet/1"]


async def test_what_is_no_longer_kept_is_not_searched(store: Store) -> None:
    await happened(store, *[told(number) for number in range(1, 30)])
    await store.write(do("DELETE FROM events WHERE sequence < 20"))
    assert await walked(store, EVENTS) == [f"pet/{number}" for number in range(29, 19, -1)]
    wanted = EVENTS._replace(since=NOW - MINUTE)
    assert len(await walked(store, wanted)) == 10
