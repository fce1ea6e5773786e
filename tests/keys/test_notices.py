"""What holders of keys are told: once, whoever notices it, and only they can read it."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from petstore.clock import DAY, MINUTE, SECOND, Milliseconds
from petstore.databases.contract import Statement, Store, Unit
from petstore.errors import Unavailable
from petstore.keys.notices import KeyNotices
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import State
from petstore.usage.counter import Counter, DeprecatedOperation, first_hour
from support.history import published
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


class Desk:
    """Uses keys as their owners do, looks for what to tell them, and reads what they were told."""

    def __init__(self, store: Store, clock: ManualClock) -> None:
        self.store = store
        self.clock = clock
        self.notices = KeyNotices(store, clock, [GET_PET])
        self._seen = 0

    async def issue(self, **wanted: Any) -> int:
        return (await issue(self.store, self.clock, **wanted)).id

    async def save(self, key_id: int = 1, **state: Any) -> None:
        """Save what a limiter knows of a key that was just used."""
        state = {"day": self.clock() // DAY, "used_at": self.clock(), **state}
        await StoredRateLimits(self.store).save([(key_id, State(**state))])

    async def call(self, key_id: int = 1) -> None:
        """Save a call of a deprecated operation."""
        counter, latest = Counter(self.store), (self.clock(), b"shop/1", "r1")
        day = self.clock() // DAY
        counter.count("deprecated", key_id, "getPet", first_hour(day), latest)
        await counter.save()

    async def told(self) -> list[tuple[str, dict[str, Any]]]:
        """Look twice, and return the type and the data of each event since the last time."""
        for _ in range(2):
            await self.notices.look()
        return await self.events()

    async def events(self) -> list[tuple[str, dict[str, Any]]]:
        await published(self.store)
        rows = await self.store.read(
            Statement(
                "SELECT type, data, resource, key_id, sequence FROM events WHERE sequence > ?1"
                " AND key_id > 0 ORDER BY sequence",
                (self._seen,),
            )
        )
        found = []
        for kind, text, resource, key_id, self._seen in rows:
            data = msgspec.json.decode(text)
            assert (data["keyId"], resource) == (key_id, f"key/{key_id}")
            found.append((kind, data))
        return found


@pytest.fixture
def desk(store: Store, clock: ManualClock) -> Desk:
    return Desk(store, clock)


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
    desk: Desk, key: dict[str, Any], state: dict[str, int], percent: int | None
) -> None:
    await desk.issue(**key)
    await desk.save(**state)
    near = {"keyId": 1, "percent": percent, "limit": 1000, "used": state["day_used"]}
    expected = [("key.limit_near", near | {"resetAt": "2026-12-02T00:00:00Z"})] if percent else []
    assert await desk.told() == expected


async def test_each_percentage_is_reported_once_a_day(desk: Desk) -> None:
    await desk.issue()
    for used, percents in ((800, [80]), (900, []), (1000, [100]), (1000, [])):
        desk.clock.advance(10)
        await desk.save(day_used=used)
        assert [data["percent"] for _, data in await desk.told()] == percents
    desk.clock.now += DAY
    assert await desk.told() == []
    await desk.save(day_used=800)
    assert [data["percent"] for _, data in await desk.told()] == [80]


async def test_a_ban_is_reported_once_unless_it_was_lifted_or_began_long_ago(desk: Desk) -> None:
    lifted, other = await desk.issue(), await desk.issue()
    now = desk.clock()
    await desk.save(lifted, banned_at=now, banned_until=now + MINUTE, ban_level=1)
    await unban(desk.store, desk.clock, lifted)
    await desk.save(other, banned_at=now - DAY, banned_until=now, ban_level=9)
    assert await desk.told() == []
    for level, minute in ((1, 10), (2, 20)):
        desk.clock.advance(600)
        until = desk.clock() + 300 * SECOND
        await desk.save(other, banned_at=desk.clock(), banned_until=until, ban_level=level)
        ban = {
            "keyId": other,
            "bannedAt": f"2026-12-01T12:{minute}:00Z",
            "bannedUntil": f"2026-12-01T12:{minute + 5}:00Z",
            "level": level,
        }
        assert await desk.told() == [("key.banned", ban)]


@pytest.mark.parametrize(
    ("left", "is_told"), [(7 * DAY, True), (7 * DAY + 1, False), (1, True), (0, False)]
)
async def test_a_key_that_expires_within_7_days_is_reported_even_if_it_is_unused(
    desk: Desk, left: Milliseconds, *, is_told: bool
) -> None:
    await desk.issue(expires_at=desk.clock() + left)
    assert [kind for kind, _ in await desk.told()] == ["key.expiring"] * is_told


async def test_a_new_expiry_is_reported_again_and_a_revoked_key_gets_no_notices(desk: Desk) -> None:
    for day in (2, 3):
        if day == 2:
            await desk.issue(expires_at=desk.clock() + DAY)
        else:
            await change(desk.store, desk.clock, 1, expires_at=desk.clock() + 2 * DAY)
        ((kind, data),) = await desk.told()
        assert (kind, data["expiresAt"]) == ("key.expiring", f"2026-12-0{day}T12:00:00Z")
    await change(desk.store, desk.clock, 1, expires_at=desk.clock() + 3 * DAY)
    await desk.save(day_used=1000)
    await revoke(desk.store, desk.clock, 1)
    assert await desk.told() == []


async def test_a_deprecated_operation_is_reported_once_a_month(desk: Desk) -> None:
    await desk.issue()
    desk.clock.now = (TODAY + 28) * DAY
    counts = []
    for _ in range(5):
        await desk.call()
        counts += [(kind, data["calls"]) for kind, data in await desk.told()]
        desk.clock.now += DAY
    assert counts == [("deprecation.used", 1), ("deprecation.used", 4)]


async def test_a_call_saved_after_midnight_is_reported_in_its_own_month(desk: Desk) -> None:
    await desk.issue()
    desk.clock.now = (TODAY + 31) * DAY - SECOND  # the last second of the year
    await desk.call()
    desk.clock.advance(2)
    assert [data["calls"] for _, data in await desk.told()] == [1]
    await desk.call()
    assert [data["calls"] for _, data in await desk.told()] == [2]


async def test_concurrent_processes_report_a_notice_once(desk: Desk) -> None:
    for key_id in range(1, 8):
        await desk.issue(expires_at=desk.clock() + DAY)
        await desk.save(key_id, day_used=900)
        await desk.call(key_id)
    processes = [KeyNotices(desk.store, desk.clock, [GET_PET]) for _ in range(6)]
    await asyncio.gather(*(process.look() for process in processes))
    found = [(kind, data["keyId"]) for kind, data in await desk.events()]
    kinds = ("deprecation.used", "key.expiring", "key.limit_near")
    assert sorted(found) == [(kind, key_id) for kind in kinds for key_id in range(1, 8)]


async def test_a_use_that_is_saved_two_minutes_late_is_noticed_and_a_later_one_at_the_next_start(
    desk: Desk,
) -> None:
    late, later = await desk.issue(), await desk.issue()
    await desk.told()
    await desk.save(late, day_used=1000, used_at=desk.clock() - 2 * MINUTE)
    await desk.save(later, day_used=1000, used_at=desk.clock() - 3 * MINUTE)
    assert [data["keyId"] for _, data in await desk.told()] == [late]
    desk.notices = KeyNotices(desk.store, desk.clock, [GET_PET])
    assert [data["keyId"] for _, data in await desk.told()] == [later]


async def test_many_keys_are_all_checked(desk: Desk) -> None:
    filled = (
        "INSERT INTO callers (kind) WITH RECURSIVE numbers (n) AS"
        " (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < 601) SELECT 'key' FROM numbers"
    )
    await desk.store.write(do(filled))
    filled = (
        "INSERT INTO api_keys (id, name, plan, scopes, environment, created_at, expires_at)"
        " SELECT id, 'test', 'free', '', 'production', 0, CAST(?1 AS BIGINT) FROM callers"
    )
    await desk.store.write(do(filled, desk.clock() + DAY))
    assert [data["keyId"] for _, data in await desk.told()] == list(range(1, 602))


async def test_a_notice_that_failed_is_reported_by_the_next_check(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(unit: Unit[None]) -> None:
        unit.close()
        raise Unavailable("full")

    await desk.issue(expires_at=desk.clock() + DAY)
    with monkeypatch.context() as patch:
        patch.setattr(desk.store, "write", refuse)
        for _ in range(2):
            with pytest.raises(Unavailable):
                await desk.notices.look()
    assert len(await desk.told()) == 1
