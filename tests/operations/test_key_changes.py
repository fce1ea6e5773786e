"""Creating, changing, rotating, revoking and unbanning keys: the rules."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from petstore.clock import SECOND
from petstore.domain.api_keys import is_token
from petstore.domain.plans import UNLIMITED, Limits, PlanName
from petstore.errors import Conflict, InvalidBody, NotFound
from petstore.operations.api_keys import (
    ApiKeyChanges,
    change_key,
    get_key,
    revoke_key,
    rotate_key,
    unban_key,
)
from petstore.storage.api_keys import SELECT_REVISION, select_keys
from petstore.storage.sqlite import SqliteStore
from support.keys import issue
from support.manual_clock import ManualClock

pytestmark = pytest.mark.anyio


CHANGES_OF_LIMITS = {
    "per_minute": ApiKeyChanges(per_minute=5),
    "per_day": ApiKeyChanges(per_day=5),
}


@pytest.mark.parametrize("plan", ["free", "pro", "business"])
@pytest.mark.parametrize("limit", CHANGES_OF_LIMITS)
async def test_only_a_key_of_the_plan_enterprise_gets_limits_of_its_own(
    store: SqliteStore, clock: ManualClock, plan: PlanName, limit: str
) -> None:
    reason = f"^{limit.replace('_', '-')}: only a key of the plan enterprise .* not {plan}$"
    with pytest.raises(InvalidBody, match=reason):
        await issue(store, clock, plan=plan, **{limit: 5})
    assert await store.read(select_keys()) == []
    issued = await issue(store, clock, plan=plan)
    with pytest.raises(InvalidBody, match=reason):
        await change_key(store, issued.key.id, CHANGES_OF_LIMITS[limit])
    assert await get_key(store, issued.key.id) == issued.key


async def test_leaving_enterprise_with_new_limits_is_refused(
    store: SqliteStore, clock: ManualClock
) -> None:
    issued = await issue(store, clock, plan="enterprise", per_minute=5)
    with pytest.raises(InvalidBody):
        await change_key(store, issued.key.id, ApiKeyChanges(plan="pro", per_minute=7))
    assert await get_key(store, issued.key.id) == issued.key


CALLS: dict[str, Callable[[SqliteStore, ManualClock], Awaitable[Any]]] = {
    "get": lambda store, _: get_key(store, 7),
    "change": lambda store, _: change_key(store, 7, ApiKeyChanges(name="new")),
    "rotate": lambda store, clock: rotate_key(store, 7, 0, clock),
    "revoke": lambda store, clock: revoke_key(store, 7, clock),
    "unban": lambda store, clock: unban_key(store, 7, clock),
}


@pytest.mark.parametrize("call", CALLS)
async def test_a_key_that_is_not_there_is_not_found(
    store: SqliteStore, clock: ManualClock, call: str
) -> None:
    with pytest.raises(NotFound, match=r"^there is no key 7$"):
        await CALLS[call](store, clock)


async def test_an_expired_key_cannot_be_rotated(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock, expires_at=clock() + SECOND)
    clock.advance(1)
    with pytest.raises(Conflict, match=r"^key 1 is expired; only an active key can be rotated$"):
        await rotate_key(store, issued.key.id, 0, clock)


async def test_a_revoked_key_cannot_be_rotated(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    await revoke_key(store, issued.key.id, clock)
    with pytest.raises(Conflict, match=r"^key 1 is revoked;"):
        await rotate_key(store, issued.key.id, 0, clock)


async def test_a_new_key_is_what_was_asked_for(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(
        store,
        clock,
        name="The shop \N{DOG FACE}",
        plan="enterprise",
        per_minute=5,
        per_day=70,
        scopes=frozenset({"pets:read", "keys:admin"}),
        environment="staging",
        expires_at=clock() + SECOND,
    )
    key = await get_key(store, issued.key.id)
    assert key == issued.key
    assert (key.id, key.name, key.plan, key.limits) == (
        1,
        "The shop \N{DOG FACE}",
        "enterprise",
        Limits(5, 70),
    )
    assert key.scopes == {"pets:read", "keys:admin"}
    assert (key.created_at, key.expires_at) == (clock(), clock() + SECOND)
    assert is_token(issued.token.encode(), "staging")


async def test_a_key_may_be_without_any_scope(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock, scopes=frozenset())
    assert (await get_key(store, issued.key.id)).scopes == frozenset()


async def test_no_token_is_in_the_database(
    store: SqliteStore, clock: ManualClock, database: Path
) -> None:
    old = await issue(store, clock)
    new = await rotate_key(store, old.key.id, SECOND, clock)
    content = b"".join(path.read_bytes() for path in database.parent.glob("petstore.db*"))
    assert b"test" in content
    for token in (old.token, new.token):
        assert token.encode() not in content
        assert token[8:40].encode() not in content


async def test_what_is_not_named_stays(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock, plan="enterprise", per_minute=5, expires_at=clock() + SECOND)
    changed = await change_key(store, issued.key.id, ApiKeyChanges(name="new"))
    assert changed == replace(issued.key, name="new")
    assert await get_key(store, issued.key.id) == changed


async def test_everything_can_be_changed_at_once(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    changed = await change_key(
        store,
        issued.key.id,
        ApiKeyChanges(
            name="new",
            plan="enterprise",
            per_minute=7,
            per_day=8,
            scopes=frozenset({"orders:read"}),
            expires_at=clock() + SECOND,
        ),
    )
    assert await get_key(store, issued.key.id) == changed
    assert changed.limits == Limits(7, 8)
    assert changed.name == "new"
    assert changed.scopes == {"orders:read"}
    assert changed.expires_at == clock() + SECOND


async def test_a_key_that_leaves_enterprise_loses_the_limits_of_its_own(
    store: SqliteStore, clock: ManualClock
) -> None:
    issued = await issue(store, clock, plan="enterprise", per_minute=5, per_day=70)
    changed = await change_key(store, issued.key.id, ApiKeyChanges(plan="pro"))
    assert changed.limits == Limits(300, 10_000)
    back = await change_key(store, issued.key.id, ApiKeyChanges(plan="enterprise"))
    assert back.limits == Limits(UNLIMITED, UNLIMITED)


async def test_changes_made_at_once_are_all_kept(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    await asyncio.gather(
        change_key(store, issued.key.id, ApiKeyChanges(name="new")),
        change_key(store, issued.key.id, ApiKeyChanges(plan="pro")),
        revoke_key(store, issued.key.id, clock),
        unban_key(store, issued.key.id, clock),
    )
    key = await get_key(store, issued.key.id)
    assert (key.name, key.plan, key.revoked_at, key.pardoned_at) == (
        "new",
        "pro",
        clock(),
        clock(),
    )


async def test_rotating_keeps_the_key_and_gives_another_token(
    store: SqliteStore, clock: ManualClock
) -> None:
    old = await issue(store, clock, environment="staging")
    new = await rotate_key(store, old.key.id, 0, clock)
    assert new.key == old.key
    assert new.token != old.token
    assert is_token(new.token.encode(), "staging")


async def test_revoking_again_changes_nothing(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    revoked = await revoke_key(store, issued.key.id, clock)
    assert revoked.revoked_at == clock()
    clock.advance(60)
    assert await revoke_key(store, issued.key.id, clock) == revoked


async def test_unbanning_pardons_what_was_until_now(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    clock.advance(60)
    assert (await unban_key(store, issued.key.id, clock)).pardoned_at == clock()


async def test_every_change_is_noticed(store: SqliteStore, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    key_id = issued.key.id
    revisions = [await store.read(SELECT_REVISION)]
    await change_key(store, key_id, ApiKeyChanges(name="new"))
    revisions.append(await store.read(SELECT_REVISION))
    await rotate_key(store, key_id, 0, clock)
    revisions.append(await store.read(SELECT_REVISION))
    await unban_key(store, key_id, clock)
    revisions.append(await store.read(SELECT_REVISION))
    await revoke_key(store, key_id, clock)
    revisions.append(await store.read(SELECT_REVISION))
    assert revisions == [[(number,)] for number in range(1, 6)]
