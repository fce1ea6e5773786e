"""Long work on the event loop."""

import asyncio
from collections.abc import Callable, Coroutine
from datetime import UTC, date, datetime
from functools import partial
from itertools import pairwise
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from petstore.databases.contract import Store
from petstore.keys.store import list_keys
from petstore.pets.model import PetFilter
from petstore.pets.store import search_pets
from petstore.sales.model import day_range
from petstore.sales.store import get_sales
from petstore.time_slices import Rounds, TimeSlices
from support.waiting import eventually, rounds_of

pytestmark = pytest.mark.anyio

WORKS, SLICES = 10, 5
WEEK = day_range(
    date(2026, 10, 1), date(2026, 10, 7), ZoneInfo("UTC"), datetime(2026, 10, 8, tzinfo=UTC)
)
LONG_READS: dict[str, Callable[[Store], Coroutine[Any, Any, object]]] = {
    "pets by name": lambda store: search_pets(store, "a", PetFilter(), None, 20),
    "keys": lambda store: list_keys(store, "production", "a", None, 20, 0),
    "sales by day": lambda store: get_sales(store, WEEK, "day", "USD"),
    "sales by category": lambda store: get_sales(store, WEEK, "category", "USD"),
}


async def test_a_few_continue_in_each_round_in_order_and_those_that_wait_again_after_them() -> None:
    loop, had = asyncio.get_running_loop(), list[int]()
    turns = Rounds(loop, 16)
    for name in range(40):
        turns.add(partial(had.append, name))
    turns.add(partial(turns.add, partial(had.append, 41)))
    turns.add(partial(had.append, 40))
    seen = []
    for _ in range(4):
        await asyncio.sleep(0)
        seen.append(len(had))
    assert seen == [16, 32, 41, 42]
    assert had == [*range(42)]


async def test_an_error_of_one_does_not_end_the_turns_of_all() -> None:
    loop, had, errors = asyncio.get_running_loop(), list[int](), list[object]()
    loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
    turns = Rounds(loop, 2)
    for turn in (lambda: 1 // 0, partial(had.append, 1), partial(had.append, 2)):
        turns.add(turn)
    await eventually(lambda: had == [1, 2])
    assert len(errors) == 1


async def test_the_loop_reads_between_two_slices_however_many_work() -> None:
    loop = asyncio.get_running_loop()
    reads = 0
    reads_before: list[int] = []  # each slice

    def read() -> None:
        nonlocal reads
        reads += 1
        if len(reads_before) < WORKS * SLICES:
            loop.call_soon(read)

    async def work() -> None:
        slices = TimeSlices(0)
        for _ in range(SLICES):
            await slices.rest()
            reads_before.append(reads)

    loop.call_soon(read)
    await asyncio.gather(*(work() for _ in range(WORKS)))
    assert all(before < after for before, after in pairwise(reads_before))


async def test_work_that_is_cancelled_takes_no_turn_from_others() -> None:
    cancelled, *others = [asyncio.create_task(TimeSlices(0).rest()) for _ in range(3)]
    await asyncio.sleep(0)
    cancelled.cancel()
    async with asyncio.timeout(30):
        await asyncio.gather(*others)
    assert cancelled.cancelled()


async def test_one_work_begins_in_each_round() -> None:
    rounds = await rounds_of(*(TimeSlices().begin() for _ in range(WORKS)))
    assert all(before < after for before, after in pairwise(rounds))


async def test_work_that_is_alone_begins_at_once_and_goes_on_within_its_slice() -> None:
    for _ in range(2):
        others = asyncio.Event()
        asyncio.get_running_loop().call_soon(others.set)
        await TimeSlices().begin()
        await TimeSlices(3600).rest()
        assert not others.is_set()
        await asyncio.sleep(0)


async def test_work_that_is_cancelled_before_it_begins_takes_no_turn_from_others() -> None:
    first, cancelled, last = [asyncio.create_task(TimeSlices().begin()) for _ in range(3)]
    await first
    cancelled.cancel()
    async with asyncio.timeout(30):
        await last
    assert cancelled.cancelled()


async def test_work_that_begins_or_that_others_wait_for_does_not_wait_for_all_that_rests() -> None:
    for work in (
        (TimeSlices().begin(), TimeSlices().begin()),
        (TimeSlices(0, queues=False).rest(),),
    ):
        resting = (TimeSlices(0).rest() for _ in range(WORKS))
        rounds = await rounds_of(*resting, *work)
        assert rounds[-1] < max(rounds[:WORKS])


@pytest.mark.parametrize("read", LONG_READS.values(), ids=LONG_READS)
async def test_many_long_reads_begin_one_after_the_other(
    store: Store,
    read: Callable[[Store], Coroutine[Any, Any, object]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # No slice is over, so each read ends in the round in which it begins, or a fixed number later.
    monkeypatch.setattr("petstore.time_slices._SLICE_SECONDS", 3600)
    assert len({*await rounds_of(*(read(store) for _ in range(WORKS)))}) == WORKS
