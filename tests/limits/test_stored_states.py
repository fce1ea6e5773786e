"""The limiter's states in the database, in whatever order processes save them."""

from typing import Any

import pytest
from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, SECOND
from petstore.databases.contract import Store, Unit
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, State
from support.keys import issue_stored, usage_of
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

TODAY = 20_788
NOON = TODAY * DAY + DAY // 2
SEEN = State(NOON, 5, TODAY, 50, strikes=3, used_at=NOON)
BANNED = replace(SEEN, banned_at=NOON, banned_until=NOON + MINUTE, strikes=0)


@pytest.fixture
async def states(store: Store) -> StoredRateLimits:
    return StoredRateLimits(store)


@pytest.fixture
async def key_id(store: Store, clock: ManualClock) -> int:
    return (await issue_stored(store, clock)).id


@pytest.mark.parametrize(("unbanned_at", "known"), [(-DAY, -1), (SECOND, SECOND)])
async def test_a_saved_ban_is_later_than_every_unban_before_it_by_any_clock(
    states: StoredRateLimits, key_id: int, unbanned_at: int, known: int
) -> None:
    assert await states.load(key_id) is None
    await states.save([(key_id, replace(BANNED, unbanned_at=NOON + unbanned_at))])
    recalled = await states.load(key_id)
    assert recalled is not None
    assert recalled.banned_until == BANNED.banned_until
    assert recalled.unbanned_at == NOON + known


@pytest.mark.parametrize(
    ("newer", "older"),
    [
        (replace(SEEN, used_at=NOON + 1), SEEN),
        (replace(SEEN, day_used=51), SEEN),  # in the same millisecond
        (BANNED, SEEN),
        (State(NOON, 5, TODAY, 50, used_at=NOON + 1), BANNED),  # unbanned
        (State(NOON, 1, TODAY + 1, 1, used_at=NOON + DAY), BANNED),
    ],
)
async def test_the_newer_state_is_kept_in_any_order_of_saves(
    states: StoredRateLimits, store: Store, key_id: int, newer: State, older: State
) -> None:
    for first, last in ((older, newer), (newer, older)):
        await states.save([(key_id, first)])
        await states.save([(key_id, last)])
        saved = await states.load(key_id)
        assert saved is not None
        assert replace(saved, unbanned_at=NEVER) == newer
        assert (newer.day, newer.day_used) in await usage_of(store, key_id)


@pytest.mark.parametrize(
    "newer",
    [
        replace(SEEN, day_used=51, used_at=NOON - DAY // 2),
        replace(SEEN, day=TODAY + 1, day_used=1, used_at=NOON - 1),
        replace(SEEN, day=TODAY - 364, day_used=51, used_at=NOON - 364 * DAY),
    ],
)
async def test_a_request_by_a_clock_that_was_set_back_is_saved(
    states: StoredRateLimits, key_id: int, newer: State
) -> None:
    await states.save([(key_id, SEEN)])
    await states.save([(key_id, newer)])
    assert await states.load(key_id) == newer


async def test_many_states_are_saved_in_parts(
    states: StoredRateLimits, store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [(await issue_stored(store, clock)).id for _ in range(260)]
    write, units = store.write, list[Unit[Any]]()

    async def counted(unit: Unit[Any]) -> None:
        units.append(unit)
        await write(unit)

    monkeypatch.setattr(store, "write", counted)
    await states.save([(key_id, replace(SEEN, day_used=key_id)) for key_id in reversed(ids)])
    saved = [await states.load(key_id) for key_id in ids]
    assert [state.day_used for state in saved if state] == ids
    assert len(units) == 2


async def test_a_state_that_cannot_be_saved_does_not_hold_up_the_others(
    states: StoredRateLimits,
    store: Store,
    clock: ManualClock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    ids = [(await issue_stored(store, clock)).id for _ in range(3)]
    many = [(key_id, SEEN) for key_id in ids]
    many[1] = (ids[1], replace(SEEN, strikes=2**63))
    for _ in range(2):
        await states.save(many)
    assert [await states.load(key_id) for key_id in ids] == [SEEN, None, SEEN]
    (record,) = caplog.records
    assert record.getMessage().startswith(f"cannot save the limits of key {ids[1]}, 1 so far: ")
