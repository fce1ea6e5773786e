"""Counts: in memory until a flush, then in rows that all processes share."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from petstore.databases.contract import Row, Statement, Store, T, Unit
from petstore.errors import Unavailable
from petstore.usage import counts as counts_module
from petstore.usage.counts import Counts
from support.keys import issue
from support.manual_clock import ManualClock
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

OK = (1, 20_000, 200)
REFUSED = (1, 20_000, 429)
OF_ANOTHER_KEY = (2, 20_000, 200)


class UncertainStore:
    """A store whose changes fail, before or after they were made, while it is told so.

    The first ``spared`` changes do not.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.failing = ""
        self.spared = 0

    async def write(self, unit: Unit[T]) -> T:
        if self.spared:
            self.spared -= 1
            return await self._store.write(unit)
        if self.failing == "before":
            unit.close()
        else:
            result = await self._store.write(unit)
        if self.failing:
            raise Unavailable(self.failing)
        return result


class SlowStore:
    """A store that takes its time before it makes a change, or after, until it is ``released``."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.is_late = False
        self.called = asyncio.Event()
        self.released = asyncio.Event()

    async def write(self, unit: Unit[T]) -> T:
        if self.is_late:
            result = await self._store.write(unit)
        self.called.set()
        await self.released.wait()
        return result if self.is_late else await self._store.write(unit)


@pytest.fixture
async def keys(store: Store, clock: ManualClock) -> Store:
    """A store with two keys."""
    for _ in range(2):
        await issue(store, clock)
    return store


@pytest.fixture
def uncertain(keys: Store) -> UncertainStore:
    return UncertainStore(keys)


@pytest.fixture
def slow(keys: Store) -> SlowStore:
    return SlowStore(keys)


def counts_of(store: Any) -> Counts:
    """Return what a process counts with."""
    return Counts(store, "responses", "requests")


async def rows(store: Store) -> dict[tuple[int, ...], int]:
    select = "SELECT key_id, day, status, requests FROM responses"
    return {tuple(name): count for *name, count in await store.read(Statement(select))}


async def in_memory(counts: Counts) -> Counter[Any]:
    summed: Counter[Any] = Counter()
    for name, tally in await counts._unflushed(1):  # noqa: SLF001 - without a look at the table
        summed[name] += tally.count
    return summed


class FlushingStore:
    """A store that lets a flush of ``counts`` happen just before its first read."""

    counts: Counts

    def __init__(self, store: Store) -> None:
        self._store = store
        self.write = store.write
        self.reads = 0

    async def read(self, statement: Statement) -> list[Row]:
        self.reads += 1
        if self.reads == 1:
            await self.counts.flush()
        return await self._store.read(statement)


async def test_a_count_that_is_flushed_during_a_read_is_read_once(keys: Store) -> None:
    store = FlushingStore(keys)
    counts = store.counts = counts_of(store)
    counts.add(OK)
    select = Statement("SELECT requests FROM responses WHERE key_id = 1", name="select_requests")
    assert await counts.read(1, select) == ([(1,)], [])
    assert store.reads == 2


async def test_a_count_is_in_memory_or_in_the_table(keys: Store) -> None:
    counts = counts_of(keys)
    for name in (OK, REFUSED, OK, OF_ANOTHER_KEY):
        counts.add(name)
    assert (await in_memory(counts), await rows(keys)) == ({OK: 2, REFUSED: 1}, {})
    await counts.flush()
    assert await in_memory(counts) == {}
    assert await rows(keys) == {OK: 2, REFUSED: 1, OF_ANOTHER_KEY: 1}
    counts.add(OK)
    await counts.flush()
    await counts.flush()
    assert (await rows(keys))[OK] == 3


async def test_processes_that_flush_at_once_add_to_the_same_rows(keys: Store) -> None:
    processes = [counts_of(keys) for _ in range(8)]
    for counts in processes:
        for name in 5 * (OF_ANOTHER_KEY, REFUSED, OK):
            counts.add(name)
    await asyncio.gather(*(counts.flush() for counts in processes))
    assert await rows(keys) == {OK: 40, REFUSED: 40, OF_ANOTHER_KEY: 40}


async def test_more_counts_than_fit_into_one_statement_are_flushed(keys: Store) -> None:
    counts, names = counts_of(keys), [(1, 20_000, status) for status in range(200, 320)]
    for name in names:
        counts.add(name)
    await counts.flush()
    assert await rows(keys) == dict.fromkeys(names, 1)


@pytest.mark.parametrize(("failing", "failed_adds"), [("before", 0), ("after", 1)])
async def test_a_flush_that_fails_is_repeated_and_may_add_its_counts_again(
    uncertain: UncertainStore, keys: Store, failing: str, failed_adds: int
) -> None:
    counts = counts_of(uncertain)
    uncertain.failing = failing
    for name in (OK, OK, REFUSED):
        counts.add(name)
        with pytest.raises(Unavailable):
            await counts.flush()
    uncertain.failing = ""
    assert await in_memory(counts) == {OK: 2, REFUSED: 1}
    await counts.flush()
    await counts.flush()
    assert await rows(keys) == {OK: 2 + 3 * failed_adds, REFUSED: 1}


@pytest.mark.parametrize(("failing", "failed_adds"), [("before", 0), ("after", 1)])
async def test_a_flush_that_fails_half_way_is_repeated_from_there(
    uncertain: UncertainStore, keys: Store, failing: str, failed_adds: int
) -> None:
    counts, names = counts_of(uncertain), [(1, day, 200) for day in range(20_000, 20_250)]
    for name in names:
        counts.add(name)
    uncertain.failing, uncertain.spared = failing, 1
    with pytest.raises(Unavailable):
        await counts.flush()
    # A hundred at a time: 50 were added, and another hundred failed.
    added = 50 + 100 * failed_adds
    assert len(await rows(keys)) == added
    assert len(await in_memory(counts)) == 200
    counts.add(names[0])
    uncertain.failing = ""
    await counts.flush()
    assert len(await rows(keys)) == 250
    assert sum((await rows(keys)).values()) == 251 + 100 * failed_adds


async def test_what_is_counted_during_a_flush_is_in_the_next_one(
    slow: SlowStore, keys: Store
) -> None:
    counts = counts_of(slow)
    counts.add(OK)
    flush = asyncio.create_task(counts.flush())
    await slow.called.wait()
    counts.add(OK)
    slow.released.set()
    await flush
    assert (await rows(keys), await in_memory(counts)) == ({OK: 1}, {OK: 1})
    await counts.flush()
    assert await rows(keys) == {OK: 2}


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_stop_that_cancels_a_flush_neither_loses_nor_doubles_counts(
    slow: SlowStore, keys: Store, *, is_late: bool
) -> None:
    slow.is_late = is_late
    counts = counts_of(slow)
    counts.add(OK)
    flush = asyncio.create_task(counts.flush())
    await slow.called.wait()
    counts.add(REFUSED)
    flush.cancel()
    await asyncio.wait({flush})
    slow.released.set()
    await counts.flush()
    assert await rows(keys) == {OK: 1, REFUSED: 1}


async def test_a_reader_waits_for_the_end_of_a_flush(
    slow: SlowStore, keys: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts_module, "_WAIT_SECONDS", 60)
    counts = counts_of(slow)
    counts.add(OK)
    flush = asyncio.create_task(counts.flush())
    await slow.called.wait()
    reader = asyncio.create_task(in_memory(counts))
    slow.released.set()
    async with asyncio.timeout(20):
        assert (await reader, await rows(keys)) == ({}, {OK: 1})
    await flush


async def test_a_reader_does_not_wait_for_a_flush_that_takes_long(
    slow: SlowStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counts_module, "_WAIT_SECONDS", 0)
    counts = counts_of(slow)
    counts.add(OK)
    flush = asyncio.create_task(counts.flush())
    await slow.called.wait()
    counts.add(REFUSED)
    assert await in_memory(counts) == {OK: 1, REFUSED: 1}
    slow.released.set()
    await flush


async def test_a_process_of_version_2_0_0_adds_to_the_same_rows(keys: Store) -> None:
    of_before = do(
        "INSERT INTO responses (key_id, day, status, requests) VALUES (?1, ?2, ?3, 5)"
        " ON CONFLICT (key_id, day, status)"
        " DO UPDATE SET requests = responses.requests + excluded.requests",
        *OK,
    )
    await keys.write(of_before)
    counts = counts_of(keys)
    counts.add(OK)
    await counts.flush()
    assert await rows(keys) == {OK: 6}
