"""What those who manage keys see of them."""

import pytest

from petstore.clock import SECOND
from petstore.errors import NotFound
from petstore.operations.api_keys import revoke_key, unban_key
from petstore.operations.key_status import key_status, key_statuses
from petstore.rate_limits.contract import State
from petstore.storage.rate_limits import StoredRateLimits
from petstore.storage.sqlite import SqliteStore
from support.keys import issue
from support.manual_clock import ManualClock

pytestmark = pytest.mark.anyio


async def ban(store: SqliteStore, key_id: int, clock: ManualClock, seconds: int) -> None:
    """Save a ban that begins now, as the limiter does."""
    state = State(
        banned_at=clock(), banned_until=clock() + seconds * SECOND, ban_level=1, used_at=clock()
    )
    await StoredRateLimits(store).save([(key_id, state)])


async def test_a_key_that_is_not_there_is_not_found(store: SqliteStore, clock: ManualClock) -> None:
    with pytest.raises(NotFound, match=r"^there is no key 7$"):
        await key_status(store, 7, clock)


async def test_a_key_never_used_has_no_last_use_and_no_ban(
    store: SqliteStore, clock: ManualClock
) -> None:
    issued = await issue(store, clock)
    assert await key_status(store, issued.key.id, clock) == (issued.key, "active", None, None)


async def test_a_key_that_is_no_longer_good_says_so(store: SqliteStore, clock: ManualClock) -> None:
    expiring = await issue(store, clock, expires_at=clock() + SECOND)
    revoked = await issue(store, clock)
    await revoke_key(store, revoked.key.id, clock)
    clock.advance(1)
    assert (await key_status(store, expiring.key.id, clock)).state == "expired"
    assert (await key_status(store, revoked.key.id, clock)).state == "revoked"


async def test_a_ban_shows_until_it_ends(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    await ban(store, issued.key.id, clock, 300)
    banned = await key_status(store, issued.key.id, clock)
    assert (banned.used_at, banned.banned_until) == (clock(), clock() + 300 * SECOND)
    clock.advance(299.999)
    assert (await key_status(store, issued.key.id, clock)).banned_until is not None
    clock.advance(0.001)
    assert (await key_status(store, issued.key.id, clock)).banned_until is None


async def test_a_lifted_ban_does_not_show_and_a_later_one_does(
    store: SqliteStore, clock: ManualClock
) -> None:
    issued = await issue(store, clock)
    await ban(store, issued.key.id, clock, 300)
    await unban_key(store, issued.key.id, clock)
    assert (await key_status(store, issued.key.id, clock)).banned_until is None
    clock.advance(1)
    await ban(store, issued.key.id, clock, 300)
    assert (await key_status(store, issued.key.id, clock)).banned_until is not None


async def test_all_keys_are_listed_by_id(store: SqliteStore, clock: ManualClock) -> None:
    assert await key_statuses(store, clock) == []
    issued = [await issue(store, clock, name=name) for name in ("first", "second", "third")]
    await ban(store, 2, clock, 300)
    statuses = await key_statuses(store, clock)
    assert [status.key for status in statuses] == [one.key for one in issued]
    assert [status.used_at for status in statuses] == [None, clock(), None]
    assert [status.banned_until is None for status in statuses] == [True, False, True]
