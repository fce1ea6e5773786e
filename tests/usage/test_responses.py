"""The responses to each key by day and status."""

import pytest

from petstore.clock import DAY
from petstore.databases.contract import Store
from petstore.usage.responses import DayOfStatus, Responses
from support.keys import issue
from support.manual_clock import ManualClock
from support.retention import prune_table

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture
async def responses(store: Store, clock: ManualClock) -> Responses:
    """The responses to three keys."""
    for _ in range(3):
        await issue(store, clock)
    return Responses(store, clock)


def today(clock: ManualClock) -> int:
    return clock() // DAY


async def test_responses_are_counted_before_and_after_a_flush(
    responses: Responses, clock: ManualClock
) -> None:
    day = today(clock)
    for status in (200, 429, 200):
        responses.add((1, day, status))
    responses.add((2, day, 200))
    for _ in range(2):
        found = await responses.of_key(1)
        assert found == [DayOfStatus(day, 200, 2), DayOfStatus(day, 429, 1)]
        await responses.flush()
    responses.add((1, day, 429))
    assert await responses.of_key(1) == [DayOfStatus(day, 200, 2), DayOfStatus(day, 429, 2)]
    assert await responses.of_key(3) == []


async def test_only_responses_of_the_last_30_days_count(
    responses: Responses, clock: ManualClock
) -> None:
    first = today(clock)
    responses.add((1, first, 200))
    await responses.flush()
    responses.add((1, first, 404))
    clock.now += 29 * DAY
    assert [each.status for each in await responses.of_key(1)] == [200, 404]
    clock.now += DAY
    assert await responses.of_key(1) == []


async def test_old_responses_are_deleted(
    responses: Responses, store: Store, clock: ManualClock
) -> None:
    day = today(clock)
    for back in (0, 1, 2):
        responses.add((1, day - back, 200))
    await responses.flush()
    assert await store.write(prune_table("responses", (day - 1) * DAY)) == 1
    assert await store.write(prune_table("responses", (day - 1) * DAY)) == 0
    assert [each.day for each in await responses.of_key(1)] == [day - 1, day]
