"""Responses by status: none lost and none doubled, whoever saves them."""

import asyncio

import pytest

from petstore.clock import DAY
from petstore.databases.contract import Store
from petstore.errors import Unavailable
from petstore.store.responses import DayOfStatus, Responses, prune_responses
from support.keys import issue
from support.manual_clock import ManualClock
from support.uncertain_store import UncertainStore

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture
async def uncertain(store: Store, clock: ManualClock) -> UncertainStore:
    """An uncertain store with three keys."""
    for _ in range(3):
        await issue(store, clock)
    return UncertainStore(store)


@pytest.fixture
def responses(uncertain: UncertainStore, clock: ManualClock) -> Responses:
    return process(uncertain, clock)


def process(store: UncertainStore, clock: ManualClock) -> Responses:
    """Return what a process counts with."""
    return Responses(store, clock)  # type: ignore[arg-type] # what it uses of one


def today(clock: ManualClock) -> int:
    return clock() // DAY


async def test_responses_are_counted_before_and_after_they_are_saved(
    responses: Responses, clock: ManualClock
) -> None:
    day = today(clock)
    for status in (200, 429, 200):
        responses.count(1, day, status)
    responses.count(2, day, 200)
    for _ in range(2):
        found = await responses.of_key(1)
        assert found == [DayOfStatus(day, 200, 2), DayOfStatus(day, 429, 1)]
        await responses.save()
    responses.count(1, day, 429)
    assert await responses.of_key(1) == [DayOfStatus(day, 200, 2), DayOfStatus(day, 429, 2)]
    assert await responses.of_key(3) == []


@pytest.mark.parametrize("failing", ["before", "after"])
async def test_a_save_that_fails_loses_nothing_and_doubles_nothing(
    responses: Responses, uncertain: UncertainStore, clock: ManualClock, failing: str
) -> None:
    day = today(clock)
    for times in (1, 2):
        responses.count(1, day, 200)
        uncertain.failing = failing
        with pytest.raises(Unavailable):
            await responses.save()
        assert await responses.of_key(1) == [DayOfStatus(day, 200, times)]
    uncertain.failing = ""
    responses.count(1, day, 200)
    await responses.save()
    await responses.save()
    assert await process(uncertain, clock).of_key(1) == [DayOfStatus(day, 200, 3)]


async def test_processes_that_save_at_once_add_to_the_same_rows(
    uncertain: UncertainStore, clock: ManualClock
) -> None:
    processes = [process(uncertain, clock) for _ in range(8)]
    for each in processes:
        for key_id in (1, 2, 3):
            each.count(key_id, today(clock), 200)
    await asyncio.gather(*(each.save() for each in processes))
    for key_id in (1, 2, 3):
        assert await processes[0].of_key(key_id) == [DayOfStatus(today(clock), 200, 8)]


async def test_responses_of_30_days_count_and_no_others(
    responses: Responses, clock: ManualClock
) -> None:
    first = today(clock)
    responses.count(1, first, 200)
    await responses.save()
    responses.count(1, first, 404)
    clock.now += 29 * DAY
    assert [each.status for each in await responses.of_key(1)] == [200, 404]
    clock.now += DAY
    assert await responses.of_key(1) == []


async def test_old_responses_are_deleted(
    responses: Responses, store: Store, clock: ManualClock
) -> None:
    day = today(clock)
    for back in (0, 1, 2):
        responses.count(1, day - back, 200)
    await responses.save()
    assert await store.write(prune_responses((day - 1) * DAY)) == 1
    assert await store.write(prune_responses((day - 1) * DAY)) == 0
    assert [each.day for each in await responses.of_key(1)] == [day - 1, day]
