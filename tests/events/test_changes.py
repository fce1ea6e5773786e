"""What shows a change: pages of its kind, if it is among their ids and was or is what they list."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from msgspec import UNSET

from petstore.databases.contract import Store, Unit
from petstore.events.changes import PageRange, RecentChanges
from petstore.events.store import Change
from petstore.orders.model import OrderCreate
from petstore.orders.store import place_order
from petstore.pets.model import NewPet, PetPatch
from petstore.pets.store import create_pets, delete_pet, update_pet
from support.changes import create_pet
from support.history import published
from support.stores import do, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOW = 1_800_000_000_000
BELLA = NewPet("Bella", 1, "available")
ORDERS = PageRange.of("order", range(1, 10_000), UNSET, UNSET)


def pets(first: int, end: int, status: Any = UNSET, category_id: Any = UNSET) -> PageRange:
    return PageRange.of("pet", range(first, end), status, category_id)


ALL = pets(1, 10_000)


class Watch:
    """Tells what shows on pages, from one look to the next."""

    def __init__(self, store: Store) -> None:
        self.changes = RecentChanges(store)
        self.seen = 0

    async def __call__(self, *pages: PageRange) -> list[bool]:
        since, self.seen = self.seen, await self.changes.catch_up()
        return [self.changes.show_on(page, since) for page in pages]


@pytest.fixture
async def shows(store: Store) -> Watch:
    """What has shown on pages since there were two pets."""
    await store.write(create_pets(Change(NOW), [BELLA, BELLA]))
    watch = Watch(store)
    await watch()
    return watch


def changed(**values: Any) -> Unit[object]:
    return update_pet(Change(NOW), 2, PetPatch(**values))


@pytest.mark.parametrize(
    ("change", "first", "status"),
    [
        (lambda: create_pet(BELLA), 3, "available"),
        (lambda: changed(name="Oskar"), 2, "available"),
        (lambda: delete_pet(Change(NOW), 2), 2, "available"),
        (lambda: place_order(Change(NOW), OrderCreate(2)), 2, "available"),
        (lambda: place_order(Change(NOW), OrderCreate(2)), 2, "pending"),
        (lambda: changed(status="sold"), 2, "sold"),
        (lambda: changed(status=None), 2, "available"),
    ],
)
async def test_a_change_shows_where_the_pet_was_or_is_listed(
    store: Store, shows: Watch, change: Callable[[], Unit[object]], first: int, status: str
) -> None:
    await store.write(change())
    pages = [pets(first, 100), pets(first, first + 1), pets(first, 100, status, 1)]
    assert await shows(*pages) == [True, True, True]


async def test_a_change_does_not_show_elsewhere(store: Store, shows: Watch) -> None:
    await store.write(changed(status="sold"))
    of_others = [pets(1, 2), pets(3, 100), pets(1, 100, UNSET, 2), pets(1, 100, "pending", 1)]
    assert not any(await shows(*of_others, ORDERS))
    await store.write(changed(category_id=2))
    pages = [pets(1, 100, UNSET, category_id) for category_id in (1, 2, 3)]
    assert await shows(*pages) == [True, True, False]


async def test_a_change_of_any_process_shows_once_however_often_it_is_read(
    address: str, store: Store, shows: Watch
) -> None:
    await published(store)
    async with open_store(address) as other:
        for writer in (other, store):
            await writer.write(create_pet(BELLA))
            assert await shows(ALL, ORDERS) == [True, False]
            assert await shows(ALL) == [False]
            await published(store)
            assert await shows(ALL) == [False]


async def test_concurrent_callers_learn_of_earlier_commits(store: Store, shows: Watch) -> None:
    for number in range(1, 4):
        before = asyncio.gather(*(shows.changes.catch_up() for _ in range(3)))
        await asyncio.sleep(0)
        await store.write(create_pet(BELLA))
        assert await shows(ALL) == [True], number
        await before


@pytest.mark.parametrize("number", [256, 2000])
async def test_too_many_changes_at_once_may_show_everywhere(
    store: Store, shows: Watch, number: int
) -> None:
    await published(store)
    await store.write(create_pets(Change(NOW), [BELLA] * number))
    assert await shows(ORDERS) == [True]
    await published(store)
    await shows()
    await store.write(create_pet(BELLA))
    assert await shows(ALL, ORDERS) == [True, False]


async def test_changes_that_are_long_ago_may_show_everywhere(store: Store, shows: Watch) -> None:
    since = shows.seen
    for number in range(1, 10):
        await store.write(create_pets(Change(NOW), [BELLA] * 250))
        await shows()
        assert shows.changes.show_on(ORDERS, since) == (number == 9)
        await published(store)
    assert not shows.changes.show_on(ORDERS, shows.seen - 1024)


@pytest.mark.parametrize("half", [127, 128])
async def test_a_page_is_checked_against_less_than_256_changes_of_its_list(
    store: Store, shows: Watch, half: int
) -> None:
    since = shows.seen
    for _ in range(2):
        await store.write(create_pets(Change(NOW), [BELLA] * half))
        await shows()
        await published(store)
    assert shows.changes.show_on(pets(1, 3), since) == (half == 128)


async def test_another_history_may_show_everywhere(store: Store, shows: Watch) -> None:
    await published(store)
    await store.write(create_pet(BELLA))
    await published(store)
    await shows()
    await store.write(do("UPDATE events SET id = 'evt_0123456789abcdef01234567'"))
    assert await shows(ORDERS) == [True]
    await store.write(do("DELETE FROM events"))
    assert await shows(ORDERS) == [True]


async def test_a_store_that_was_copied_here_may_show_everywhere(store: Store) -> None:
    changes = RecentChanges(store)
    known = await changes.catch_up()
    await store.write(create_pets(Change(NOW), [BELLA] * 2))
    await published(store)
    await store.write(do("DELETE FROM events WHERE sequence = 1"))
    await changes.catch_up()
    assert changes.show_on(ORDERS, known)


async def test_what_left_no_event_shows_after_a_minute(
    shows: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    assert await shows(ALL) == [False]
    await asyncio.sleep(0)
    now = loop.time()
    with monkeypatch.context() as patch:
        patch.setattr(loop, "time", lambda: now + 61)
        showed = await shows(ALL)
    assert showed == [True]
