"""Counts: in memory until they are saved, then in rows that all processes share."""

import asyncio
from typing import cast

import pytest

from petstore.clock import DAY
from petstore.databases.contract import Store, T, Unit
from petstore.errors import Unavailable
from petstore.usage.counter import Counter, first_hour, text_of
from support.manual_clock import ManualClock
from support.retention import prune_table

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOON = 498_924  # an hour


def count(counter: Counter, *names: str, key_id: int = 1, hour: int = NOON) -> None:
    for name in names:
        counter.count("response", key_id, name, hour)


async def seen(counter: Counter, key_id: int = 1) -> dict[str, int]:
    found = await counter.read("response", key_id, NOON)
    return {each.name: each.requests for each in found}


async def test_counts_are_seen_at_once_and_do_not_change_when_they_are_saved(store: Store) -> None:
    counter = Counter(store)
    count(counter, "200", "429", "200")
    count(counter, "404", key_id=2)
    count(counter, "200", hour=NOON - 1)
    counter.count("refused", 1, "listPets", NOON)
    assert await seen(Counter(store)) == {}
    for _ in range(3):
        assert await seen(counter) == {"200": 2, "429": 1}
        assert await seen(counter, 2) == {"404": 1}
        assert len(await counter.read("refused", 1, NOON)) == 1
        assert len(await counter.read("response", 1, NOON - 1)) == 3
        await counter.save()
    count(counter, "200")
    assert await seen(counter) == {"200": 3, "429": 1}
    assert await seen(Counter(store)) == {"200": 2, "429": 1}


async def test_processes_that_save_at_once_add_to_the_same_rows(store: Store) -> None:
    processes = [Counter(store) for _ in range(8)]
    for counter in processes:
        count(counter, *5 * ("404", "429", "200"))
    await asyncio.gather(*(counter.save() for counter in processes))
    assert await seen(Counter(store)) == {"200": 40, "404": 40, "429": 40}


@pytest.mark.parametrize("spared", [0, 1])
async def test_a_failed_save_adds_each_count_once(store: Store, spared: int) -> None:
    names = [f"{number}" for number in range(250)]

    class Faulty:
        """Fails once some changes were spared."""

        read = store.read
        left = 0

        async def write(self, unit: Unit[T]) -> T:
            if self.left == 0:
                unit.close()
                raise Unavailable(str(unit))
            self.left -= 1
            return await store.write(unit)

    faulty = Faulty()
    counter = Counter(cast("Store", faulty))
    for _ in range(3):
        faulty.left = spared
        count(counter, *names)
        with pytest.raises(Unavailable):
            await counter.save()
    assert await seen(counter) == dict.fromkeys(names, 3)
    faulty.left = 99
    for _ in range(2):
        await counter.save()
    assert await seen(Counter(store)) == dict.fromkeys(names, 3)


async def test_a_count_is_seen_once_during_its_save(store: Store) -> None:
    held, released = asyncio.Event(), asyncio.Event()

    class Slow:
        """Makes each change at once, and returns later."""

        read = store.read

        async def write(self, unit: Unit[T]) -> T:
            result = await store.write(unit)
            held.set()
            await released.wait()
            return result

    counter = Counter(cast("Store", Slow()))
    count(counter, "200")
    save = asyncio.create_task(counter.save())
    await held.wait()
    count(counter, "200")
    reading = asyncio.create_task(seen(counter))
    released.set()
    await save
    assert (await seen(Counter(store)), await reading) == ({"200": 1}, {"200": 2})
    assert await seen(counter) == {"200": 2}


async def test_the_latest_request_is_kept(store: Store, clock: ManualClock) -> None:
    old, new = Counter(store), Counter(store)
    old.count("deprecated", 1, "getPet", NOON, (clock(), b"old/1", "r1"))
    new.count("deprecated", 1, "getPet", NOON, (clock() + 1, b"new/1", "r2"))
    new.count("deprecated", 1, "getPet", NOON, (clock() + 2, b"new/2", "r3"))
    for counter in (new, old):
        await counter.save()
    (found,) = await old.read("deprecated", 1, NOON)
    assert (found.requests, found.latest) == (3, f'[{clock() + 2},"new/2","r3"]')


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        (None, ""),
        (b"", ""),
        (b"shop/1.4 (Linux)", "shop/1.4 (Linux)"),
        (b"x" * 5_000, "x" * 100),
        ("\N{DOG FACE}".encode() * 101, "\N{DOG FACE}" * 100),
        (b"caf\xe9", "caf\N{REPLACEMENT CHARACTER}"),
        ("a\x1b[31m\n\u202eevil\x00".encode(), "a?[31m??evil?"),
    ],
)
def test_a_user_agent_is_kept_as_up_to_100_printable_characters(
    sent: bytes | None, kept: str
) -> None:
    assert text_of((1, sent, "r1")) == f'[1,"{kept}","r1"]'


async def test_the_newest_thousand_counts_are_read(store: Store) -> None:
    counter = Counter(store)
    count(counter, *(f"operation{number:04}" for number in range(1001)))
    count(counter, "getPet", hour=NOON + 1)
    for _ in range(2):
        found = await counter.read("response", 1, NOON)
        assert (len(found), found[0].name, found[1].name) == (1000, "getPet", "operation0000")
        await counter.save()


async def test_counts_are_deleted_after_31_days(store: Store, clock: ManualClock) -> None:
    today, counter = clock() // DAY, Counter(store)
    for day in range(today - 600, today + 1):
        counter.count("response", 1, "200", first_hour(day))
    await counter.save()
    deleted = [await store.write(prune_table("counts", clock() - 31 * DAY)) for _ in range(3)]
    assert deleted == [500, 70, 0]
    assert [each.hour for each in await counter.read("response", 1, 0)] == [
        first_hour(today - back) for back in range(31)
    ]
