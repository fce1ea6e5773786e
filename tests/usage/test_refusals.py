"""The requests of each key that a limit refused, by hour and operation."""

import pytest

from petstore.clock import DAY, HOUR, utc
from petstore.databases.contract import Store
from petstore.usage.refusals import Refusals, RefusedRequests
from support.keys import issue
from support.manual_clock import ManualClock
from support.retention import prune_table

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


@pytest.fixture
async def refusals(store: Store, clock: ManualClock) -> Refusals:
    """The refused requests of two keys."""
    for _ in range(2):
        await issue(store, clock)
    return Refusals(store, clock)


def refused(
    clock: ManualClock, hours: int, operation: str | None, requests: int
) -> RefusedRequests:
    """Return what was refused so many hours before now, when the hour was at its end."""
    return RefusedRequests(utc((clock() // HOUR - hours) * HOUR), operation, requests)


async def test_refusals_are_counted_by_hour_and_operation_before_and_after_a_flush(
    refusals: Refusals, clock: ManualClock
) -> None:
    for operation in ("listPets", "", "createPet", "listPets"):
        refusals.count(1, clock(), operation)
    refusals.count(2, clock(), "listPets")
    clock.now += HOUR
    refusals.count(1, clock(), "listPets")
    expected = [
        refused(clock, 0, "listPets", 1),
        refused(clock, 1, None, 1),
        refused(clock, 1, "createPet", 1),
        refused(clock, 1, "listPets", 2),
    ]
    for _ in range(2):
        assert await refusals.of_key(1) == expected
        await refusals.flush()
    refusals.count(1, clock(), "listPets")
    assert (await refusals.of_key(1))[0] == refused(clock, 0, "listPets", 2)
    assert await refusals.of_key(2) == [refused(clock, 1, "listPets", 1)]


async def test_processes_add_to_the_same_rows(
    refusals: Refusals, store: Store, clock: ManualClock
) -> None:
    for each in (refusals, Refusals(store, clock)):
        each.count(1, clock(), "listPets")
        await each.flush()
    assert await refusals.of_key(1) == [refused(clock, 0, "listPets", 2)]


async def test_only_refusals_of_the_last_7_days_are_shown(
    refusals: Refusals, clock: ManualClock
) -> None:
    refusals.count(1, clock(), "listPets")
    await refusals.flush()
    refusals.count(1, clock(), "createPet")
    clock.now += 7 * DAY - HOUR
    assert len(await refusals.of_key(1)) == 2
    clock.now += HOUR
    assert await refusals.of_key(1) == []


async def test_the_newest_thousand_rows_are_shown(refusals: Refusals, clock: ManualClock) -> None:
    for number in range(1001):
        refusals.count(1, clock(), f"operation{number:04}")
    clock.now += HOUR
    refusals.count(1, clock(), "listPets")
    for _ in range(2):
        found = await refusals.of_key(1)
        assert (len(found), found[0].operation) == (1000, "listPets")
        await refusals.flush()


async def test_old_refusals_are_deleted(
    refusals: Refusals, store: Store, clock: ManualClock
) -> None:
    for hours in (0, 1, 2):
        refusals.count(1, clock() - hours * HOUR, "listPets")
    await refusals.flush()
    before = (clock() // HOUR - 1) * HOUR
    assert await store.write(prune_table("refused_requests", before)) == 1
    assert await store.write(prune_table("refused_requests", before)) == 0
    assert len(await refusals.of_key(1)) == 2
