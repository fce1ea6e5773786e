"""The calls of deprecated operations, as their key and as operators see them."""

from datetime import UTC, datetime

import pytest

from petstore.clock import DAY, utc_second
from petstore.databases.contract import Store
from petstore.deprecations.model import DeprecatedOperation, KeyDeprecatedUse
from petstore.deprecations.store import DeprecatedCalls, list_uses
from support.keys import issue
from support.manual_clock import ManualClock
from support.retention import prune_table

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


def operation(name: str) -> DeprecatedOperation:
    return DeprecatedOperation(
        name,
        "GET",
        f"/v1/{name}",
        datetime(2026, 11, 21, tzinfo=UTC),
        datetime(2030, 12, 5, tzinfo=UTC),
        "something else",
        f"/docs#/{name}",
    )


OPERATIONS = (operation("getPet"), operation("findPet"))


@pytest.fixture
async def calls(store: Store, clock: ManualClock) -> DeprecatedCalls:
    """The calls of three keys."""
    for _ in range(3):
        await issue(store, clock)
    return DeprecatedCalls(store, clock, OPERATIONS)


def call(
    calls: DeprecatedCalls,
    clock: ManualClock,
    times: int = 1,
    key_id: int = 1,
    operation: str = "getPet",
    user_agent: bytes | None = b"shop/1",
) -> None:
    for number in range(times):
        calls.count(key_id, operation, clock(), user_agent, f"request-{number + 1}")


async def listed(
    store: Store, clock: ManualClock, after: int | None = None, limit: int = 100
) -> list[KeyDeprecatedUse]:
    page = await list_uses(store, OPERATIONS, None, after, limit, clock)
    return page.items


async def numbers(store: Store, clock: ManualClock) -> list[tuple[int, str, int]]:
    return [(use.key_id, use.operation, use.calls) for use in await listed(store, clock)]


async def test_calls_are_counted_before_and_after_a_flush(
    calls: DeprecatedCalls, clock: ManualClock
) -> None:
    call(calls, clock, 3)
    call(calls, clock, 2, operation="findPet")
    call(calls, clock, 9, key_id=2)
    for _ in range(2):
        found = await calls.of_key(1)
        assert [(use.operation, use.calls) for use in found] == [("getPet", 3), ("findPet", 2)]
        await calls.flush()


async def test_the_last_call_is_the_latest_in_any_order_of_flushes(
    calls: DeprecatedCalls, store: Store, clock: ManualClock
) -> None:
    other = DeprecatedCalls(store, clock, OPERATIONS)
    call(other, clock, user_agent=b"old/1")
    clock.advance(5)
    call(calls, clock, 2, user_agent=b"new/1")
    await calls.flush()
    await other.flush()
    (use,) = await listed(store, clock)
    assert (use.calls, use.last_user_agent, use.last_request_id) == (3, "new/1", "request-2")
    assert use.last_called_at == utc_second(clock())


async def test_the_days_add_up_and_the_latest_has_the_last_call(
    calls: DeprecatedCalls, store: Store, clock: ManualClock
) -> None:
    for day in range(3):
        call(calls, clock, day + 1, user_agent=b"shop/%d" % day)
        await calls.flush()
        clock.now += DAY
    call(calls, clock, 4, user_agent=b"shop/now")
    (use,) = await calls.of_key(1)
    assert (use.calls, use.last_user_agent) == (10, "shop/now")
    (use,) = await listed(store, clock)
    assert (use.calls, use.last_user_agent) == (6, "shop/2")


async def test_only_calls_of_the_last_30_days_count(
    calls: DeprecatedCalls, store: Store, clock: ManualClock
) -> None:
    call(calls, clock, 5)
    await calls.flush()
    clock.now += DAY
    call(calls, clock, 2)
    clock.now += 28 * DAY
    assert [use.calls for use in await calls.of_key(1)] == [7]
    await calls.flush()
    clock.now += DAY
    assert [use.calls for use in await calls.of_key(1)] == [2]
    assert await numbers(store, clock) == [(1, "getPet", 2)]
    clock.now += DAY
    assert await calls.of_key(1) == []
    assert await numbers(store, clock) == []


async def test_unflushed_calls_of_old_days_do_not_count(
    calls: DeprecatedCalls, clock: ManualClock
) -> None:
    call(calls, clock)
    clock.now += 30 * DAY
    assert await calls.of_key(1) == []


async def test_operations_that_are_no_longer_deprecated_are_left_out(
    calls: DeprecatedCalls, store: Store, clock: ManualClock
) -> None:
    call(calls, clock, operation="gone")
    call(calls, clock)
    await calls.flush()
    assert await numbers(store, clock) == [(1, "getPet", 1)]
    assert [use.operation for use in await calls.of_key(1)] == ["getPet"]
    page = await list_uses(store, (), None, None, 10, clock)
    assert page.items == []


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (None, ""),
        (b"", ""),
        (b"shop/1.4 (Linux)", "shop/1.4 (Linux)"),
        (b"a" * 5_000, "a" * 100),
        ("\N{DOG FACE}".encode() * 200, "\N{DOG FACE}" * 100),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}"),
        ("red\x1b[31m \u202eevil\x00".encode(), "red?[31m ?evil?"),
    ],
)
@pytest.mark.usefixtures("database")
async def test_a_user_agent_is_stored_as_up_to_100_printable_characters(
    calls: DeprecatedCalls,
    store: Store,
    clock: ManualClock,
    sent: bytes | None,
    kept: str,
) -> None:
    call(calls, clock, user_agent=sent)
    await calls.flush()
    assert [use.last_user_agent for use in await listed(store, clock)] == [kept]


async def test_calls_are_listed_in_pages(
    calls: DeprecatedCalls, store: Store, clock: ManualClock
) -> None:
    for key_id in (1, 2, 3):
        for name in ("getPet", "findPet"):
            call(calls, clock, key_id, key_id, name)
    await calls.flush()
    names = ("findPet", "getPet")
    for limit in (1, 2, 4):
        seen, after = [], None
        while True:
            page = await list_uses(store, OPERATIONS, None, after, limit, clock)
            seen += [(use.key_id, use.operation, use.calls) for use in page.items]
            after = page.next_after
            if after is None:
                break
            assert len(page.items) == limit
        assert seen == [(key_id, name, key_id) for key_id in (1, 2, 3) for name in names]


async def test_a_list_continues_after_an_operation_that_was_removed(
    calls: DeprecatedCalls, store: Store, clock: ManualClock
) -> None:
    for key_id in (1, 2):
        call(calls, clock, key_id=key_id, operation="findPet")
    await calls.flush()
    page = await list_uses(store, OPERATIONS, None, 1_999, 10, clock)
    assert [use.key_id for use in page.items] == [1, 2]


# Pruning


async def test_old_calls_are_deleted_in_batches(
    calls: DeprecatedCalls, store: Store, clock: ManualClock
) -> None:
    today = clock() // DAY
    for day in range(today - 600, today + 1):
        calls.count(1, "getPet", day * DAY, None, "")
    await calls.flush()
    before = (today - 29) * DAY
    deleted = [await store.write(prune_table("deprecated_calls", before)) for _ in range(3)]
    assert deleted == [500, 71, 0]
    assert await numbers(store, clock) == [(1, "getPet", 30)]
