"""Calls of deprecated operations: none lost and none doubled, whoever saves them."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from petstore.clock import DAY, SECOND, utc_second
from petstore.databases.contract import Row, Statement, Store
from petstore.domain.deprecations import DeprecatedOperation, KeyDeprecatedUse
from petstore.errors import Unavailable
from petstore.store.counted_batches import prune_saved_batches
from petstore.store.deprecated_calls import (
    DeprecatedCalls,
    list_uses,
    prune_deprecated_calls,
)
from support.keys import issue
from support.manual_clock import ManualClock
from support.uncertain_store import UncertainStore

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
async def uncertain(store: Store, clock: ManualClock) -> UncertainStore:
    """An uncertain store with three keys."""
    for _ in range(3):
        await issue(store, clock)
    return UncertainStore(store)


@pytest.fixture
def calls(uncertain: UncertainStore, clock: ManualClock) -> DeprecatedCalls:
    return process(uncertain, clock)


def process(store: UncertainStore, clock: ManualClock) -> DeprecatedCalls:
    """Return what a process counts with."""
    return DeprecatedCalls(store, clock, OPERATIONS)  # type: ignore[arg-type] # what it uses of one


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
    uncertain: UncertainStore, clock: ManualClock, after: int | None = None, limit: int = 100
) -> list[KeyDeprecatedUse]:
    page = await list_uses(uncertain, OPERATIONS, None, after, limit, clock)
    return page.items


async def numbers(uncertain: UncertainStore, clock: ManualClock) -> list[tuple[int, str, int]]:
    return [(use.keyId, use.operation, use.calls) for use in await listed(uncertain, clock)]


async def test_a_key_that_calls_nothing_deprecated_has_none(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock
) -> None:
    await calls.save()
    assert await calls.of_key(1) == []
    assert await listed(uncertain, clock) == []


async def test_calls_are_counted_before_and_after_they_are_saved(
    calls: DeprecatedCalls, clock: ManualClock
) -> None:
    call(calls, clock, 3)
    call(calls, clock, 2, operation="findPet")
    call(calls, clock, 9, key_id=2)
    for _ in range(2):
        found = await calls.of_key(1)
        assert [(use.operation, use.calls) for use in found] == [("getPet", 3), ("findPet", 2)]
        await calls.save()


@pytest.mark.parametrize("failing", ["before", "after"])
async def test_a_save_that_fails_loses_nothing_and_doubles_nothing(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock, failing: str
) -> None:
    call(calls, clock, 3)
    for _ in range(2):
        uncertain.failing = failing
        with pytest.raises(Unavailable):
            await calls.save()
        call(calls, clock, 2)
    uncertain.failing = ""
    await calls.save()
    await calls.save()
    assert await numbers(uncertain, clock) == [(1, "getPet", 7)]
    assert [use.calls for use in await calls.of_key(1)] == [7]


@pytest.mark.parametrize("failing", ["before", "after"])
async def test_processes_add_to_the_same_row(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock, failing: str
) -> None:
    other = process(uncertain, clock)
    call(calls, clock, 3)
    uncertain.failing = failing
    with pytest.raises(Unavailable):
        await calls.save()
    uncertain.failing = ""
    call(other, clock, 4)
    await other.save()
    await calls.save()
    assert await numbers(uncertain, clock) == [(1, "getPet", 7)]


async def test_processes_that_save_at_once_lose_nothing(
    uncertain: UncertainStore, clock: ManualClock
) -> None:
    processes = [process(uncertain, clock) for _ in range(8)]
    for calls in processes:
        for key_id in (1, 2, 3):
            call(calls, clock, 5, key_id)
    await asyncio.gather(*(calls.save() for calls in processes))
    assert await numbers(uncertain, clock) == [(key_id, "getPet", 40) for key_id in (1, 2, 3)]


async def test_more_calls_than_a_statement_takes_are_saved(
    calls: DeprecatedCalls, uncertain: UncertainStore, store: Store, clock: ManualClock
) -> None:
    for key_id in range(4, 61):
        await issue(store, clock)
        call(calls, clock, key_id=key_id)
    await calls.save()
    assert len(await listed(uncertain, clock)) == 57


async def test_the_last_call_is_the_latest_whoever_saves_it_last(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock
) -> None:
    other = process(uncertain, clock)
    call(other, clock, user_agent=b"old/1")
    clock.advance(5)
    call(calls, clock, 2, user_agent=b"new/1")
    await calls.save()
    await other.save()
    (use,) = await listed(uncertain, clock)
    assert (use.calls, use.lastUserAgent, use.lastRequestId) == (3, "new/1", "request-2")
    assert use.lastCalledAt == utc_second(clock())
    assert use == KeyDeprecatedUse(
        operation="getPet",
        method="GET",
        path="/v1/getPet",
        since=datetime(2026, 11, 21, tzinfo=UTC),
        sunset=datetime(2030, 12, 5, tzinfo=UTC),
        use="something else",
        documentation="/docs#/getPet",
        calls=3,
        lastCalledAt=utc_second(clock()),
        lastUserAgent="new/1",
        lastRequestId="request-2",
        keyId=1,
        keyName="test",
    )


async def test_the_days_add_up_and_the_latest_has_the_last_call(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock
) -> None:
    for day in range(3):
        call(calls, clock, day + 1, user_agent=b"shop/%d" % day)
        await calls.save()
        clock.now += DAY
    call(calls, clock, 4, user_agent=b"shop/now")
    (use,) = await calls.of_key(1)
    assert (use.calls, use.lastUserAgent) == (10, "shop/now")
    (use,) = await listed(uncertain, clock)
    assert (use.calls, use.lastUserAgent) == (6, "shop/2")


async def test_calls_of_30_days_count_and_no_others(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock
) -> None:
    call(calls, clock, 5)
    await calls.save()
    clock.now += DAY
    call(calls, clock, 2)
    clock.now += 28 * DAY
    assert [use.calls for use in await calls.of_key(1)] == [7]
    await calls.save()
    clock.now += DAY
    assert [use.calls for use in await calls.of_key(1)] == [2]
    assert await numbers(uncertain, clock) == [(1, "getPet", 2)]
    clock.now += DAY
    assert await calls.of_key(1) == []
    assert await numbers(uncertain, clock) == []


async def test_unsaved_calls_of_old_days_do_not_count(
    calls: DeprecatedCalls, clock: ManualClock
) -> None:
    call(calls, clock)
    clock.now += 30 * DAY
    assert await calls.of_key(1) == []


async def test_operations_that_are_not_deprecated_now_are_left_out(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock
) -> None:
    call(calls, clock, operation="gone")
    call(calls, clock)
    await calls.save()
    assert await numbers(uncertain, clock) == [(1, "getPet", 1)]
    assert [use.operation for use in await calls.of_key(1)] == ["getPet"]
    page = await list_uses(uncertain, (), None, None, 10, clock)
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
async def test_a_user_agent_is_kept_as_100_printable_characters(
    calls: DeprecatedCalls,
    uncertain: UncertainStore,
    clock: ManualClock,
    sent: bytes | None,
    kept: str,
) -> None:
    call(calls, clock, user_agent=sent)
    await calls.save()
    assert [use.lastUserAgent for use in await listed(uncertain, clock)] == [kept]


@pytest.mark.parametrize("limit", [1, 2, 4])
async def test_a_list_comes_page_by_page(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock, limit: int
) -> None:
    for key_id in (1, 2, 3):
        for name in ("getPet", "findPet"):
            call(calls, clock, key_id, key_id, name)
    await calls.save()
    seen, after = [], None
    while True:
        page = await list_uses(uncertain, OPERATIONS, None, after, limit, clock)
        seen += [(use.keyId, use.operation, use.calls) for use in page.items]
        after = page.next_after
        if after is None:
            break
        assert len(page.items) == limit
    names = ("findPet", "getPet")
    assert seen == [(key_id, name, key_id) for key_id in (1, 2, 3) for name in names]


async def test_a_list_goes_on_behind_an_operation_that_is_gone(
    calls: DeprecatedCalls, uncertain: UncertainStore, clock: ManualClock
) -> None:
    for key_id in (1, 2):
        call(calls, clock, key_id=key_id, operation="findPet")
    await calls.save()
    page = await list_uses(uncertain, OPERATIONS, None, 1_999, 10, clock)
    assert [use.keyId for use in page.items] == [1, 2]


async def test_a_list_of_one_environment_has_no_keys_of_the_other(
    calls: DeprecatedCalls, uncertain: UncertainStore, store: Store, clock: ManualClock
) -> None:
    await issue(store, clock, environment="staging")
    for key_id in (1, 4):
        call(calls, clock, key_id=key_id)
    await calls.save()
    for environment, key_id in (("production", 1), ("staging", 4)):
        page = await list_uses(uncertain, OPERATIONS, environment, None, 10, clock)  # type: ignore[arg-type]
        assert [use.keyId for use in page.items] == [key_id]


class SavedMeanwhile:
    """A store in which a save ends just before or after each query."""

    def __init__(self, store: Store, when: str) -> None:
        self.write = store.write
        self.save: Any = None
        self._store = store
        self._when = when

    async def read(self, statement: Statement) -> list[Row]:
        if self._when == "before":
            await self.save()
        rows = await self._store.read(statement)
        if self._when == "after":
            await self.save()
        return rows


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_save_that_ends_during_a_query_neither_hides_nor_doubles_calls(
    store: Store, clock: ManualClock, when: str
) -> None:
    await issue(store, clock)
    between = SavedMeanwhile(store, when)
    calls = DeprecatedCalls(between, clock, OPERATIONS)  # type: ignore[arg-type]
    between.save = calls.save
    call(calls, clock, key_id=1)
    assert [use.calls for use in await calls.of_key(1)] == [1]
    call(calls, clock, key_id=1)
    call(calls, clock, key_id=1)
    assert [use.calls for use in await calls.of_key(1)] == [3]


# Pruning


async def test_old_calls_are_deleted_in_batches(
    calls: DeprecatedCalls, uncertain: UncertainStore, store: Store, clock: ManualClock
) -> None:
    today = clock() // DAY
    for day in range(today - 600, today + 1):
        calls.count(1, "getPet", day * DAY, None, "")
    await calls.save()
    deleted = [await store.write(prune_deprecated_calls((today - 29) * DAY)) for _ in range(3)]
    assert deleted == [500, 71, 0]
    assert await numbers(uncertain, clock) == [(1, "getPet", 30)]


async def test_old_numbers_of_batches_are_deleted(
    uncertain: UncertainStore, store: Store, clock: ManualClock
) -> None:
    for _ in range(3):
        calls = process(uncertain, clock)
        call(calls, clock)
        await calls.save()
        clock.advance(10)
    before = clock() - 10 * SECOND
    assert await store.write(prune_saved_batches(before)) == 2
    assert await store.write(prune_saved_batches(before)) == 0
    ((left,),) = await store.read(Statement("SELECT count(*) FROM deprecated_call_saves"))
    assert left == 1
