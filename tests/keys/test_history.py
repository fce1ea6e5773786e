"""The record of every change to a key: actor, fields and time."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from petstore.clock import SECOND, utc_second
from petstore.databases.contract import Store
from petstore.errors import (
    BeyondOwnRights,
    InvalidBody,
    KeyEnded,
    LastAdminKey,
    NotFound,
    PetstoreError,
)
from petstore.keys.history import Change, KeyEvent, list_history
from petstore.keys.store import Principal
from support.keys import actor, change, issue, revoke, rotate, unban
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

Act = Callable[[Store, ManualClock, Principal], Awaitable[Any]]

ADMIN = frozenset({"keys:admin", "pets:read"})
CREATED = {
    "name": Change(None, "test"),
    "plan": Change(None, "free"),
    "scopes": Change(None, ["pets:read"]),
}


async def history(store: Store, key_id: int = 1) -> list[KeyEvent]:
    return (await list_history(store, key_id, None, None, 1_000)).items


async def administrator(store: Store, clock: ManualClock) -> Principal:
    """Return an actor with a key that may administer keys, and that has the plan free."""
    return await actor(store, clock, scopes=ADMIN)


FAILURES: list[tuple[Act, type[PetstoreError]]] = [
    (lambda store, clock, by: change(store, clock, 1, by=by, per_day=5), InvalidBody),
    (lambda store, clock, by: change(store, clock, 1, by=by, plan="pro"), BeyondOwnRights),
    (
        lambda store, clock, by: change(
            store, clock, 1, by=by, scopes=frozenset({"pets:read", "orders:read"})
        ),
        BeyondOwnRights,
    ),
    (lambda store, clock, by: issue(store, clock, by=by, plan="pro"), BeyondOwnRights),
    (lambda store, clock, by: rotate(store, clock, 3, by=by), BeyondOwnRights),
    (lambda store, clock, by: rotate(store, clock, 4, by=by), KeyEnded),
    (lambda store, clock, by: revoke(store, clock, 2, by=by), LastAdminKey),
    (
        lambda store, clock, by: change(store, clock, 2, by=by, scopes=frozenset({"pets:read"})),
        LastAdminKey,
    ),
]


@pytest.mark.parametrize(("act", "error"), FAILURES)
@pytest.mark.usefixtures("database")
async def test_a_failed_change_leaves_no_trace(
    store: Store, clock: ManualClock, act: Act, error: type[PetstoreError]
) -> None:
    await issue(store, clock, scopes=frozenset({"pets:read"}))
    by = await administrator(store, clock)
    await issue(store, clock, plan="business")
    await issue(store, clock)
    await revoke(store, clock, 4)
    before = [await history(store, key_id) for key_id in range(1, 5)]
    with pytest.raises(error):
        await act(store, clock, by)
    assert [await history(store, key_id) for key_id in range(1, 5)] == before
    with pytest.raises(NotFound):
        await history(store, 5)


async def test_a_change_that_changes_nothing_is_not_recorded(
    store: Store, clock: ManualClock
) -> None:
    await issue(store, clock)
    await change(store, clock, 1)
    await change(store, clock, 1, name="test", plan="free")
    await revoke(store, clock, 1)
    clock.advance(1)
    await revoke(store, clock, 1)
    assert [event.action for event in await history(store)] == ["created", "revoked"]


async def test_a_new_key_is_recorded_with_all_its_fields(store: Store, clock: ManualClock) -> None:
    await issue(
        store,
        clock,
        name="The shop \N{DOG FACE}",
        plan="enterprise",
        per_minute=5,
        scopes=ADMIN,
        expires_at=clock() + 60 * SECOND,
        allowed_networks=("10.0.0.0/8",),
    )
    (event,) = await history(store)
    assert [*event.changes.items()] == [
        ("name", Change(None, "The shop \N{DOG FACE}")),
        ("plan", Change(None, "enterprise")),
        ("perMinute", Change(None, 5)),
        ("scopes", Change(None, ["keys:admin", "pets:read"])),
        ("allowedNetworks", Change(None, ["10.0.0.0/8"])),
        ("expiresAt", Change(None, "2026-12-01T12:01:00Z")),
    ]


ACTIONS: list[tuple[Act, str, dict[str, Change]]] = [
    (
        lambda store, clock, by: change(store, clock, 1, by=by, name="new"),
        "changed",
        {"name": Change("test", "new")},
    ),
    (
        lambda store, clock, by: change(
            store, clock, 1, by=by, scopes=frozenset({"keys:admin", "pets:read"}), expires_at=0
        ),
        "changed",
        {
            "scopes": Change(["pets:read"], ["keys:admin", "pets:read"]),
            "expiresAt": Change(None, "1970-01-01T00:00:00Z"),
        },
    ),
    (
        lambda store, clock, by: change(store, clock, 1, by=by, allowed_networks=("10.0.0.0/8",)),
        "changed",
        {
            "allowedNetworks": Change([], ["10.0.0.0/8"]),
        },
    ),
    (lambda store, clock, by: rotate(store, clock, 1, by=by), "rotated", {}),
    (lambda store, clock, by: unban(store, clock, 1, by=by), "unbanned", {}),
    (
        lambda store, clock, by: revoke(store, clock, 1, by=by),
        "revoked",
        {"revokedAt": Change(None, "2026-12-01T12:00:07Z")},
    ),
]


@pytest.mark.parametrize(("act", "action", "changes"), ACTIONS)
@pytest.mark.parametrize("is_operator", [True, False])
@pytest.mark.usefixtures("database")
async def test_a_change_is_recorded_with_its_actor_fields_and_time(
    store: Store,
    clock: ManualClock,
    act: Act,
    action: str,
    changes: dict[str, Change],
    *,
    is_operator: bool,
) -> None:
    await issue(store, clock, scopes=frozenset({"pets:read"}))
    admin = await administrator(store, clock)
    clock.advance(7)
    await act(store, clock, Principal("command line (ada)") if is_operator else admin)
    created, event = await history(store)
    assert created == KeyEvent(
        1, utc_second(clock() - 7 * SECOND), "the operator", "created", CREATED
    )
    by = "command line (ada)" if is_operator else "key 2"
    assert event == KeyEvent(3, utc_second(clock()), by, action, changes)


async def test_leaving_enterprise_records_the_lost_limits(store: Store, clock: ManualClock) -> None:
    await issue(store, clock, plan="enterprise", per_minute=5)
    await change(store, clock, 1, plan="pro")
    (_, event) = await history(store)
    assert event.changes == {"plan": Change("enterprise", "pro"), "perMinute": Change(5, None)}


async def test_the_history_of_one_key_is_listed_in_pages(store: Store, clock: ManualClock) -> None:
    for _ in range(2):
        await issue(store, clock)
    for name in ("first", "second", "third"):
        await change(store, clock, 1, name=name)
        await change(store, clock, 2, name=f"not {name}")
    after, names = None, []
    for count in (2, 2):
        page = await list_history(store, 1, None, after, 2)
        assert len(page.items) == count
        names += [event.changes["name"].after for event in page.items]
        after = page.next_after
    assert after is None
    assert names == ["test", "first", "second", "third"]
