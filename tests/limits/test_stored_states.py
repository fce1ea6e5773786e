"""The limiter's states in the database, in whatever order processes save them."""

import pytest
from msgspec.structs import replace

from petstore.clock import DAY, MINUTE, SECOND
from petstore.databases.contract import Store
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, State
from support.keys import issue_stored, usage_of
from support.manual_clock import ManualClock
from support.rows import statements_of

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


def test_many_states_are_saved_in_order_and_250_at_a_time() -> None:
    many = [(key_id, SEEN) for key_id in range(251, 0, -1)]
    saves = statements_of(lambda store: StoredRateLimits(store).save(many))
    saved = [(each.name.removeprefix("upsert_"), each.parameters[0]) for each in saves]
    parts = (range(1, 251), range(251, 252))
    tables = ("rate_limits", "usage")
    assert saved == [(table, key) for part in parts for table in tables for key in part]


async def test_a_state_that_cannot_be_saved_does_not_hold_up_the_others(
    states: StoredRateLimits, store: Store, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    ids = [(await issue_stored(store, clock)).id for _ in range(3)]
    many = [(key_id, SEEN) for key_id in ids]
    many[1] = (ids[1], replace(SEEN, strikes=2**63))
    for _ in range(2):
        await states.save(many)
    assert [await states.load(key_id) for key_id in ids] == [SEEN, None, SEEN]
    (record,) = caplog.records
    assert record.getMessage().startswith(f"cannot save the limits of key {ids[1]}, 1 so far: ")
