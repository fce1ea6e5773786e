"""The list of keys: searched by name, and sorted."""

import pytest

from petstore.clock import DAY, HOUR, MINUTE, Milliseconds
from petstore.databases.contract import Store
from petstore.domain.cursors import BY_NAME
from petstore.keys import uses as uses_module
from petstore.keys.uses import KEY_SORTS, KeySort, KeysWanted, find_keys
from petstore.limits.contract import State
from petstore.limits.database import StoredRateLimits
from support.keys import issue
from support.manual_clock import ManualClock
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


async def add(store: Store, clock: ManualClock, *names: str) -> None:
    for name in names:
        await issue(store, clock, name=name)


async def use(
    store: Store, clock: ManualClock, key_id: int, used_at: Milliseconds, today: int = 1
) -> None:
    """Save requests of a key, one of them in its minute."""
    state = State(
        minute_started=clock(),
        minute_used=1,
        day=clock() // DAY,
        day_used=today,
        used_at=used_at,
    )
    await StoredRateLimits(store).save([(key_id, state)])


async def see(store: Store, key_id: int, seen_at: Milliseconds) -> None:
    """Save when somebody was in the console with a key."""
    await store.write(do("UPDATE api_keys SET seen_at = ?2 WHERE id = ?1", key_id, seen_at))


async def found(
    store: Store, clock: ManualClock, words: str = "", sort: KeySort = "id", limit: int = 100
) -> list[int]:
    """Return the ids of all keys that are wanted, page by page, from cursor to cursor."""
    ids: list[int] = []
    wanted = KeysWanted("production", words, sort)
    while True:
        page = await find_keys(store, wanted, limit, clock())
        assert len(page.uses) <= limit
        ids += [each.key.id for each in page.uses]
        if page.next_after is None:
            return ids
        assert len(page.uses) == limit
        after = BY_NAME.decode(BY_NAME.encode(page.next_after))
        wanted = wanted._replace(after=after)


@pytest.mark.parametrize(
    ("words", "ids"),
    [
        ("", [1, 2, 3, 4]),
        ("till", [1, 2]),
        ("TILL", [1, 2]),
        ("kathe", []),
        ("KÄTHE", [3]),
        ("ka\u0308the", [3]),
        ("2 till", [2]),
        ("ill", [1, 2]),
        ("till shop", [1]),
        ("till elsewhere", []),
        ("3", [3]),
        ("2", [2]),
        ("4", [1, 4]),
        ("04", []),
        ("%", []),
        ("_", []),
        ("100%", []),
        ("\0", []),
        (f"till{' ' * 200}nothing", [1, 2]),
    ],
)
async def test_keys_are_found_by_any_words_of_their_name_or_by_their_number(
    store: Store, clock: ManualClock, words: str, ids: list[int]
) -> None:
    await add(store, clock, "Till 4 in the Shop", "Till 2", "Käthe's phone", "Bot")
    assert await found(store, clock, words) == ids


async def test_keys_of_another_environment_and_people_are_not_found(
    store: Store, clock: ManualClock
) -> None:
    await add(store, clock, "first", "second")
    await issue(store, clock, environment="staging")
    await store.write(do("UPDATE api_keys SET role = 'clerk' WHERE id = 2"))
    for sort in KEY_SORTS:
        assert await found(store, clock, sort=sort) == [1]


async def test_names_are_sorted_without_regard_to_case(store: Store, clock: ManualClock) -> None:
    await add(store, clock, "beta", "Alpha", "alpha", "Über", "zeta")
    assert await found(store, clock, sort="name") == [2, 3, 1, 5, 4]
    assert await found(store, clock, sort="-name") == [4, 5, 1, 3, 2]


async def test_the_last_use_counts_the_interface_and_the_console(
    store: Store, clock: ManualClock
) -> None:
    await add(store, clock, "never", "program", "person", "both")
    await use(store, clock, 2, clock() - 3 * HOUR)
    await see(store, 3, clock() - 2 * HOUR)
    await use(store, clock, 4, clock() - 4 * HOUR)
    await see(store, 4, clock() - HOUR)
    assert await found(store, clock, sort="-used") == [4, 3, 2, 1]
    assert await found(store, clock, sort="used") == [1, 2, 3, 4]


async def test_keys_are_sorted_by_what_they_used_today(store: Store, clock: ManualClock) -> None:
    await add(store, clock, "unused", "busy", "rested", "calm")
    await use(store, clock, 3, clock(), 99)
    clock.now += DAY
    await use(store, clock, 2, clock(), 10)
    await use(store, clock, 4, clock(), 9)
    assert await found(store, clock, sort="-today") == [2, 4, 3, 1]
    page = await find_keys(store, KeysWanted("production", sort="-today"), 4, clock())
    assert [(each.minute, each.day) for each in page.uses] == [(1, 10), (1, 9), (0, 0), (0, 0)]
    clock.now += MINUTE
    page = await find_keys(store, KeysWanted("production", sort="-today"), 1, clock())
    assert [(each.minute, each.day) for each in page.uses] == [(0, 10)]


@pytest.mark.parametrize("sort", KEY_SORTS)
@pytest.mark.parametrize("at_once", [1, 3, 500])
async def test_every_key_is_on_one_page_in_every_order(
    store: Store,
    clock: ManualClock,
    monkeypatch: pytest.MonkeyPatch,
    sort: KeySort,
    at_once: int,
) -> None:
    monkeypatch.setattr(uses_module, "_READ_AT_ONCE", at_once)
    await add(store, clock, *(f"key {number % 3}" for number in range(8)))
    for key_id in range(1, 9):
        await use(store, clock, key_id, clock() - key_id % 4 * MINUTE, key_id % 2)
    every = await found(store, clock, sort=sort)
    assert sorted(every) == list(range(1, 9))
    for limit in (1, 3, 8):
        assert await found(store, clock, sort=sort, limit=limit) == every


async def test_a_key_that_moves_up_meanwhile_breaks_no_page(
    store: Store, clock: ManualClock
) -> None:
    await add(store, clock, "a", "b", "c")
    for key_id, today in ((1, 3), (2, 2), (3, 1)):
        await use(store, clock, key_id, clock(), today)
    wanted = KeysWanted("production", sort="-today")
    first = await find_keys(store, wanted, 1, clock())
    clock.now += 1
    await use(store, clock, 3, clock(), 9)
    rest = await find_keys(store, wanted._replace(after=first.next_after), 5, clock())
    assert [each.key.id for each in rest.uses] == [2]
