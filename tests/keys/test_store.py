"""Keys in the store: what may be done with them, their status, and how they are found."""

from typing import Any

import pytest
from msgspec.structs import replace

from petstore.clock import MINUTE, SECOND, utc_second
from petstore.databases.contract import Statement, Store
from petstore.domain.plans import PLANS
from petstore.errors import InvalidBody, KeyEnded
from petstore.keys.store import get_key, list_keys
from petstore.limits.database import StoredRateLimits
from petstore.limits.decide import NEVER, State
from support.keys import change, issue, revoke, rotate, stored_key, unban
from support.manual_clock import ManualClock
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


async def test_only_an_enterprise_key_has_custom_limits_and_loses_them_with_the_plan(
    store: Store, clock: ManualClock
) -> None:
    custom: dict[str, dict[str, Any]] = {"perMinute": {"per_minute": 5}, "perDay": {"per_day": 5}}
    key_id = (await issue(store, clock, plan="enterprise", per_minute=5, per_day=70)).id
    for plan in ("free", "pro", "business"):
        for name, wanted in custom.items():
            reason = f"^{name}: only a key of the plan enterprise .* not {plan}$"
            with pytest.raises(InvalidBody, match=reason):
                await issue(store, clock, plan=plan, **wanted)
            with pytest.raises(InvalidBody, match=reason):
                await change(store, clock, key_id, plan=plan, **wanted)
        changed = await change(store, clock, key_id, plan=plan)
        assert (changed.per_minute, changed.per_day) == PLANS[plan]
        for wanted in custom.values():
            with pytest.raises(InvalidBody):
                await change(store, clock, key_id, **wanted)
        assert (await list_keys(store, "production", "", None, 100, clock())).items == [changed]
    changed = await change(store, clock, key_id, plan="enterprise")
    assert (changed.per_minute, changed.per_day) == (None, None)


async def test_a_key_that_has_ended_cannot_be_rotated(store: Store, clock: ManualClock) -> None:
    await issue(store, clock, expires_at=clock() + SECOND)
    await revoke(store, clock, (await issue(store, clock)).id)
    clock.advance(1)
    for key_id, state in ((1, "expired"), (2, "revoked")):
        reason = f"^key {key_id} is {state}; only an active key can be rotated$"
        with pytest.raises(KeyEnded, match=reason):
            await rotate(store, clock, key_id)


async def test_each_unban_is_later_than_the_previous_one(store: Store, clock: ManualClock) -> None:
    issued = await issue(store, clock)
    await unban(store, clock, issued.id)
    clock.advance(-60)
    await unban(store, clock, issued.id)
    assert (await stored_key(store, issued.id)).unbanned_at == clock() + 60_001


@pytest.mark.parametrize("ahead", [-20, 20])
async def test_a_ban_shows_until_it_is_lifted_despite_clock_skew(
    store: Store, clock: ManualClock, ahead: int
) -> None:
    issued = await issue(store, clock)
    states = StoredRateLimits(store)
    unbanned_at = NEVER
    for _ in range(3):
        now = clock() + ahead * SECOND
        state = State(banned_at=now, banned_until=now + MINUTE, unbanned_at=unbanned_at)
        await states.save([(issued.id, replace(state, used_at=now))])
        assert (await get_key(store, issued.id, None, clock)).banned_until is not None
        await unban(store, clock, issued.id)
        assert (await get_key(store, issued.id, None, clock)).banned_until is None
        # The limiter applies it to the next request.
        ((unbanned_at,),) = await store.read(Statement("SELECT unbanned_at FROM api_keys", ()))
        recalled = await states.load(issued.id)
        assert recalled is not None
        assert recalled.unbanned_at < unbanned_at
        clock.advance(1)


@pytest.mark.parametrize(
    ("used", "seen", "last"), [(None, 2, 2), (1, None, 1), (1, 2, 2), (2, 1, 2), (2, 2, 2)]
)
async def test_the_last_use_is_one_of_the_interface_or_of_the_console(
    store: Store, clock: ManualClock, used: int | None, seen: int | None, last: int
) -> None:
    key_id = (await issue(store, clock)).id
    start = clock()
    clock.advance(600)
    if used is not None:
        await StoredRateLimits(store).save([(key_id, State(used_at=start + used * MINUTE))])
    if seen is not None:
        at = start + seen * MINUTE + 999
        await store.write(do("UPDATE callers SET seen_at = ?2 WHERE id = ?1", key_id, at))
    expected = utc_second(start + last * MINUTE)
    assert (await get_key(store, key_id, None, clock)).last_used_at == expected
    (listed,) = (await list_keys(store, "production", "", None, 100, clock())).items
    assert listed.last_used_at == expected


async def add(store: Store, clock: ManualClock, *names: str) -> None:
    """Add keys, and one of another environment, which is not found."""
    for name in names:
        await issue(store, clock, name=name)
    await issue(store, clock, name="key a", environment="staging")


async def ids_of(store: Store, clock: ManualClock, words: str = "", limit: int = 100) -> list[int]:
    """Return the ids of all keys that are found, page by page."""
    ids: list[int] = []
    after: int | None = None
    while True:
        page = await list_keys(store, "production", words, after, limit, clock())
        assert len(page.items) <= limit
        ids += [each.id for each in page.items]
        if page.next_after is None:
            return ids
        assert len(page.items) == limit
        after = page.next_after


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        *(("", [1, 2, 3, 4]), ("till", [1, 2]), ("TILL", [1, 2]), ("ill", [1, 2])),
        *(("kathe", []), ("KÄTHE", [3]), ("ka\u0308the", [3])),
        *(("2 till", [2]), ("till shop", [1]), ("till elsewhere", [])),
        *(("3", [3]), ("2", [2]), ("4", [1, 4]), ("04", []), ("5", [])),
        *((text, []) for text in ("%", "_", "100%", "\0")),
    ],
)
async def test_keys_are_found_by_any_words_of_their_name_or_by_their_number(
    store: Store, clock: ManualClock, words: str, ids: list[int]
) -> None:
    await add(store, clock, "Till 4 in the Shop", "Till 2", "Käthe's phone", "Bot")
    assert await ids_of(store, clock, words) == ids


async def test_a_token_that_was_found_leads_to_its_key_after_rotations_too(
    store: Store, clock: ManualClock
) -> None:
    await add(store, clock, "first", "second")
    old = await issue(store, clock, name="leaked")
    new = await rotate(store, clock, old.id)
    await rotate(store, clock, old.id)
    ends = f"\N{HORIZONTAL ELLIPSIS}{new.token[-4:]}"
    for text in (old.token, old.token[-4:], f" {new.token}\n", ends):
        assert await ids_of(store, clock, text) == [old.id]
    assert await ids_of(store, clock, old.token[-3:]) == []


@pytest.mark.parametrize("limit", [1, 3, 8])
async def test_every_key_is_on_one_page(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("petstore.keys.store._SEARCHED_AT_ONCE", 2)
    await add(store, clock, *(f"key {'ab'[number % 2]}" for number in range(8)))
    assert await ids_of(store, clock, limit=limit) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert await ids_of(store, clock, "key a", limit) == [1, 3, 5, 7]
