"""What holders of keys are told: once, whoever notices it, and only they can read it."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.databases.contract import Statement, Store, Unit
from petstore.errors import Unavailable
from petstore.events.store import publish_all
from petstore.keys.notices import KeyNotices
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import State
from petstore.usage.counter import Counter, DeprecatedOperation, first_hour
from support.keys import change, issue, revoke, unban
from support.manual_clock import ManualClock
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

GET_PET = DeprecatedOperation(
    "getPet",
    "GET",
    "/v1/pets/{petId}",
    datetime(2026, 11, 21, tzinfo=UTC),
    datetime(2030, 12, 5, tzinfo=UTC),
    "GET /v1/pets",
    "/docs/operations/getPet",
)
TODAY = 20_788


@pytest.fixture
def notices(store: Store, clock: ManualClock) -> KeyNotices:
    return KeyNotices(store, clock, [GET_PET])


@pytest.fixture
def events(store: Store, database_kind: str) -> "Events":
    return Events(store, is_published=database_kind == "sqlite")


class Events:
    """The events in the feed of a store, as they come."""

    def __init__(self, store: Store, *, is_published: bool) -> None:
        self._store = store
        self._is_published = is_published
        self._seen = 0

    async def new(self) -> list[tuple[str, dict[str, Any]]]:
        """Return the type and the data of each event since the last time."""
        if not self._is_published:
            await publish_all(self._store)
        rows = await self._store.read(
            Statement(
                "SELECT type, data, resource, key_id, sequence FROM events WHERE sequence > ?1"
                " AND key_id > 0"
                " ORDER BY sequence",
                (self._seen,),
            )
        )
        found = []
        for kind, text, resource, key_id, self._seen in rows:
            data = msgspec.json.decode(text)
            assert (data["keyId"], resource) == (key_id, f"key/{key_id}")
            found.append((kind, data))
        return found


async def save(store: Store, clock: ManualClock, key_id: int = 1, **state: Any) -> None:
    """Save what a limiter knows of a key that was just used."""
    state = {"day": clock() // DAY, "used_at": clock(), **state}
    await StoredRateLimits(store).save([(key_id, State(**state))])


async def call(store: Store, clock: ManualClock, key_id: int = 1, name: str = "getPet") -> None:
    """Save a call of a deprecated operation."""
    counter, latest = Counter(store), (clock(), b"shop/1", "r1")
    counter.count("deprecated", key_id, name, first_hour(clock() // DAY), latest)
    await counter.save()


# The limit of the day


@pytest.mark.parametrize(
    ("key", "state", "percent"),
    [
        ({}, {"day_used": 799}, None),
        ({}, {"day_used": 800}, 80),
        ({}, {"day_used": 999}, 80),
        ({}, {"day_used": 1000}, 100),
        ({}, {"day_used": 1000, "day": TODAY - 1}, None),
        ({"plan": "enterprise"}, {"day_used": 2_000_000_000}, None),
    ],
)
async def test_a_limit_is_near_at_80_and_at_100_percent(
    store: Store,
    clock: ManualClock,
    notices: KeyNotices,
    events: Events,
    key: dict[str, Any],
    state: dict[str, int],
    percent: int | None,
) -> None:
    await issue(store, clock, **key)
    await save(store, clock, **state)
    await notices.look()
    near = {"keyId": 1, "percent": percent, "limit": 1000, "used": state["day_used"]}
    expected = [("key.limit_near", near | {"resetAt": "2026-12-02T00:00:00Z"})] if percent else []
    assert await events.new() == expected


async def test_each_percentage_is_reported_once_a_day(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock)
    percents = []
    for used in (800, 900, 1000, 1000):
        clock.advance(10)
        await save(store, clock, day_used=used)
        for _ in range(2):
            await notices.look()
        percents.append([data["percent"] for _, data in await events.new()])
    assert percents == [[80], [], [100], []]
    clock.now += DAY
    await notices.look()
    assert await events.new() == []
    await save(store, clock, day_used=800)
    await notices.look()
    assert [data["percent"] for _, data in await events.new()] == [80]


# Bans


async def test_a_ban_is_reported_once(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock)
    for level in (1, 2):
        clock.advance(600)
        until = clock() + 300 * SECOND
        await save(store, clock, banned_at=clock(), banned_until=until, ban_level=level)
        for _ in range(2):
            clock.advance(10)
            await notices.look()
    assert await events.new() == [
        (
            "key.banned",
            {
                "keyId": 1,
                "bannedAt": f"2026-12-01T12:{minute}:{second}Z",
                "bannedUntil": f"2026-12-01T12:{minute + 5}:{second}Z",
                "level": level,
            },
        )
        for level, minute, second in ((1, 10, "00"), (2, 20, "20"))
    ]


async def test_a_ban_that_was_lifted_or_began_long_ago_is_not_reported(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    for _ in range(2):
        await issue(store, clock)
    await save(store, clock, 1, banned_at=clock(), banned_until=clock() + MINUTE, ban_level=1)
    await unban(store, clock, 1)
    await save(store, clock, 2, banned_at=clock() - DAY, banned_until=clock(), ban_level=9)
    await notices.look()
    assert await events.new() == []


# The end of a key


@pytest.mark.parametrize(
    ("left", "is_told"), [(7 * DAY, True), (7 * DAY + 1, False), (1, True), (0, False)]
)
async def test_a_key_that_expires_within_7_days_is_reported_even_if_it_is_unused(
    store: Store,
    clock: ManualClock,
    notices: KeyNotices,
    events: Events,
    left: Milliseconds,
    *,
    is_told: bool,
) -> None:
    await issue(store, clock, expires_at=clock() + left)
    for _ in range(2):
        await notices.look()
    assert [kind for kind, _ in await events.new()] == ["key.expiring"] * is_told


async def test_a_key_with_a_new_expiry_is_reported_again(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock, expires_at=clock() + DAY)
    await notices.look()
    await change(store, clock, 1, expires_at=clock() + 2 * DAY)
    await notices.look()
    assert [data["expiresAt"] for _, data in await events.new()] == [
        "2026-12-02T12:00:00Z",
        "2026-12-03T12:00:00Z",
    ]


async def test_a_revoked_key_gets_no_notices(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock, expires_at=clock() + DAY)
    await save(store, clock, day_used=1000)
    await revoke(store, clock, 1)
    await notices.look()
    assert await events.new() == []


# Deprecated operations


async def test_a_deprecated_operation_is_reported_once_a_month(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock)
    counts = []
    for _ in range(33):
        await call(store, clock)
        await notices.look()
        counts += [(kind, data["calls"]) for kind, data in await events.new()]
        clock.now += DAY
    assert counts == [("deprecation.used", 1), ("deprecation.used", 30)]


async def test_a_call_saved_after_midnight_is_reported_in_its_own_month(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock)
    clock.now = (TODAY + 31) * DAY - SECOND  # the last second of the year
    await call(store, clock)
    clock.advance(2)
    await notices.look()
    await call(store, clock)
    await notices.look()
    assert [data["calls"] for _, data in await events.new()] == [1, 2]


# Many processes, many keys, failures


async def test_concurrent_processes_report_a_notice_once(
    store: Store, clock: ManualClock, events: Events
) -> None:
    for key_id in range(1, 8):
        await issue(store, clock, expires_at=clock() + DAY)
        await save(store, clock, key_id, day_used=900)
        await call(store, clock, key_id)
    processes = [KeyNotices(store, clock, [GET_PET]) for _ in range(6)]
    await asyncio.gather(*(process.look() for process in processes))
    found = [(kind, data["keyId"]) for kind, data in await events.new()]
    kinds = ("deprecation.used", "key.expiring", "key.limit_near")
    assert sorted(found) == [(kind, key_id) for kind in kinds for key_id in range(1, 8)]


async def test_a_notice_saved_late_by_another_process_is_reported(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock)
    await notices.look()
    state = State(day=TODAY, day_used=1000, used_at=clock() - 30 * SECOND)
    await StoredRateLimits(store).save([(1, state)])
    clock.advance(10)
    await notices.look()
    assert len(await events.new()) == 1


async def test_keys_without_recent_use_are_not_checked_again(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock)
    await notices.look()
    await save(store, clock, day_used=1000, used_at=clock() - 3 * MINUTE)
    await notices.look()
    assert await events.new() == []
    await KeyNotices(store, clock, [GET_PET]).look()  # a process that has just started
    assert len(await events.new()) == 1


async def test_many_keys_are_all_checked(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    filled = (
        "INSERT INTO callers (kind) WITH RECURSIVE numbers (n) AS"
        " (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 601) SELECT 'key' FROM numbers"
    )
    await store.write(do(filled))
    filled = (
        "INSERT INTO api_keys (id, name, plan, scopes, environment, created_at, expires_at)"
        " SELECT id, 'test', 'free', '', 'production', 0, CAST(?1 AS BIGINT) FROM callers"
    )
    await store.write(do(filled, clock() + DAY))
    await notices.look()
    assert [data["keyId"] for _, data in await events.new()] == list(range(1, 602))


async def test_a_notice_that_failed_is_reported_by_the_next_check(
    store: Store, clock: ManualClock, notices: KeyNotices, events: Events
) -> None:
    await issue(store, clock, expires_at=clock() + DAY)
    lost = KeyNotices(FullStore(store), clock, [GET_PET])  # type: ignore[arg-type] # what it uses
    for _ in range(2):
        with pytest.raises(Unavailable):
            await lost.look()
    await notices.look()
    assert len(await events.new()) == 1


class FullStore:
    """A store that can only be read."""

    def __init__(self, store: Store) -> None:
        self.read = store.read

    async def write(self, unit: Unit[None]) -> None:
        unit.close()
        msg = "full"
        raise Unavailable(msg)
