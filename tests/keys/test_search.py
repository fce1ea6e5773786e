"""Keys by words of their names, by their number, or by the end of a token."""

import pytest

from petstore.databases.contract import Store
from petstore.keys.store import search_keys
from support.keys import issue, rotate
from support.manual_clock import ManualClock

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]


async def add(store: Store, clock: ManualClock, *names: str) -> None:
    for name in names:
        await issue(store, clock, name=name)


async def found(store: Store, clock: ManualClock, words: str = "", limit: int = 100) -> list[int]:
    """Return the ids of all keys that are found, page by page."""
    ids: list[int] = []
    after: int | None = None
    while True:
        page = await search_keys(store, "production", words, after, limit, clock())
        assert len(page.items) <= limit
        ids += [each.id for each in page.items]
        if page.next_after is None:
            return ids
        assert len(page.items) == limit
        after = page.next_after


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
    ],
)
async def test_keys_are_found_by_any_words_of_their_name_or_by_their_number(
    store: Store, clock: ManualClock, words: str, ids: list[int]
) -> None:
    await add(store, clock, "Till 4 in the Shop", "Till 2", "Käthe's phone", "Bot")
    assert await found(store, clock, words) == ids


async def test_keys_of_another_environment_are_not_found(store: Store, clock: ManualClock) -> None:
    await add(store, clock, "first")
    await issue(store, clock, environment="staging")
    assert await found(store, clock) == [1]


async def test_a_token_that_was_found_leads_to_its_key_after_rotations_too(
    store: Store, clock: ManualClock
) -> None:
    await add(store, clock, "first", "second")
    old = await issue(store, clock, name="leaked")
    new = await rotate(store, clock, old.id)
    await rotate(store, clock, old.id)
    for text in (
        old.token,
        old.token[-4:],
        f" {new.token}\n",
        f"\N{HORIZONTAL ELLIPSIS}{new.token[-4:]}",
    ):
        assert await found(store, clock, text) == [old.id]
    assert await found(store, clock, old.token[-3:]) == []


@pytest.mark.parametrize("limit", [1, 3, 8])
async def test_every_key_is_on_one_page(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr("petstore.keys.store._SEARCHED_AT_ONCE", 2)
    await add(store, clock, *(f"key {'ab'[number % 2]}" for number in range(8)))
    assert await found(store, clock, limit=limit) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert await found(store, clock, "key a", limit) == [1, 3, 5, 7]
