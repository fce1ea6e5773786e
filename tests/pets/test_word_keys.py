"""The keys of words follow every change."""

import random
from typing import NamedTuple

import pytest

from petstore.databases.contract import Store
from petstore.domain.words import MAX_WORDS, first_word, word_keys_of, words_of
from petstore.events.store import Change
from petstore.pets.model import NewPet, PetFilter, PetPatch
from petstore.pets.search import search_pets
from petstore.pets.store import delete_pet, update_pet
from support.changes import create_pet, create_pets
from support.stores import do

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOW = 1_800_000_000_000
SYLLABLES = (
    "be",
    "b\u00e9",
    "BE",
    "Mr.",
    "mr",
    "D\u00e4rcy",
    "darcy",
    "o'br",
    "\U0001f436",
    "!",
    "\u00df",
)
BETWEEN = ("", "", " ", "-", "  ", "'")
TEXTS = (
    "b",
    "be",
    "B\u00e9",
    "mr",
    "mr d",
    "MR. BE",
    "dar",
    "d\u00e4",
    "o'b",
    "br",
    "\U0001f436",
    "!",
    "ss",
    "be be",
    " be",
)
LONG = "\ufdfa " * 100 + " ".join(f"w{number}" for number in range(10))
assert len(LONG) <= 255


async def add(store: Store, name: str) -> int:
    return (await store.write(create_pet(NewPet(name, 1)))).id


async def rename(store: Store, pet_id: int, name: str) -> None:
    unit = update_pet(Change(NOW), pet_id, PetPatch(name))
    await store.write(unit)


async def delete(store: Store, pet_id: int) -> None:
    await store.write(delete_pet(Change(NOW), pet_id))


async def walk(store: Store, text: str, limit: int = 100) -> list[int]:
    """Return the ids that a search finds, page by page."""
    page = await search_pets(store, text, PetFilter(), None, limit)
    found = [pet.id for pet in page.items]
    while page.next_after is not None:
        page = await search_pets(store, text, PetFilter(), page.next_after, limit)
        found += [pet.id for pet in page.items]
    return found


async def stored_words(store: Store) -> set[tuple[str, int]]:
    return {
        (key, pet_id)
        for key, pet_id in await store.write(do("SELECT word_key, pet_id FROM pet_words"))
    }


class Known(NamedTuple):
    """An animal as it should be found, by its words."""

    id: int
    name: str

    def position(self, text: str) -> tuple[str, str, int] | None:
        """Return what sorts it, if a search finds it."""
        words, (*whole, beginning) = words_of(self.name), words_of(text)
        size = len(whole)
        places = [
            place
            for place in range(len(words) - size)
            if [*words[place : place + size]] == whole and words[place + size].startswith(beginning)
        ]
        if not places:
            return None
        if whole:
            rest = min(" ".join(words[place:]) for place in places)
            return (first_word(rest), rest, self.id)
        return (min(words[place] for place in places), " ".join(words), self.id)

    def word_keys(self) -> set[tuple[str, int]]:
        """Return the keys of its words."""
        return {(key, self.id) for key in word_keys_of(words_of(self.name))}


class Shop:
    """A store, its animals, and changes of them that are drawn by ``seed``."""

    def __init__(self, store: Store, seed: int) -> None:
        self.store = store
        self.random = random.Random(seed)  # noqa: S311
        self.animals: dict[int, Known] = {}

    def name(self) -> str:
        """Return a name of a few words with marks."""
        draw = self.random
        parts = [draw.choice(SYLLABLES) + draw.choice(BETWEEN) for _ in range(draw.randint(1, 4))]
        return "".join(parts).strip() or "x"

    async def change(self) -> None:
        """Make one change."""
        kind = self.random.choice(["add", "add", "add", "rename", "delete"])
        if kind == "add" or not self.animals:
            name = self.name()
            pet_id = await add(self.store, name)
            self.animals[pet_id] = Known(pet_id, name)
        elif kind == "rename":
            pet_id, name = self.random.choice([*self.animals]), self.name()
            await rename(self.store, pet_id, name)
            self.animals[pet_id] = Known(pet_id, name)
        else:
            pet_id = self.random.choice([*self.animals])
            await delete(self.store, pet_id)
            del self.animals[pet_id]

    async def check(self) -> None:
        """Require that searches find what they should, in order, and that no key is left over."""
        text, limit = self.random.choice(TEXTS), self.random.choice([1, 2, 3, 100])
        positions = [
            position for each in self.animals.values() if (position := each.position(text))
        ]
        assert await walk(self.store, text, limit) == [each[-1] for each in sorted(positions)], text
        assert await stored_words(self.store) == {
            key for each in self.animals.values() for key in each.word_keys()
        }


@pytest.mark.parametrize("seed", range(4))
async def test_searches_find_what_they_should_after_any_change(store: Store, seed: int) -> None:
    shop = Shop(store, seed)
    for _ in range(60):
        await shop.change()
        await shop.check()


@pytest.mark.parametrize(
    "name",
    [
        "Mr. Darcy",
        LONG,
        "a\U0001f436" * 127,
        "! ? \" \\ ' !",
        "a" * 101 + " " + "b" * 101,
        "\ufb03" * 200 + " rex",
    ],
)
async def test_no_word_of_a_deleted_or_renamed_animal_is_left(store: Store, name: str) -> None:
    pet_id = await add(store, name)
    await store.write(create_pets([NewPet(name, 1)]))
    assert await stored_words(store) >= {(key, pet_id) for key in word_keys_of(words_of(name))}
    await rename(store, pet_id + 1, "Rex")
    await delete(store, pet_id)
    assert await stored_words(store) == set()


async def test_the_first_words_of_the_longest_names_are_found(store: Store) -> None:
    name = " ".join(f"w{number:02}" for number in range(60))
    await store.write(create_pets(NewPet(each, 1) for each in (name, "a\U0001f436" * 127)))
    assert await walk(store, f"w{MAX_WORDS - 1:02}") == [1]
    assert await walk(store, f"w{MAX_WORDS - 2:02} w{MAX_WORDS - 1:02}") == [1]
    assert await walk(store, f"w{MAX_WORDS:02}") == []
    assert await walk(store, "\U0001f436 a") == [2]
    assert len(await stored_words(store)) <= 4 * MAX_WORDS


@pytest.mark.parametrize("text", [" ", "   ", "\u2003"])
async def test_a_text_of_white_space_finds_nothing(store: Store, text: str) -> None:
    await store.write(create_pets([NewPet("Scout the Molly", 1)] * 3))
    assert await search_pets(store, text, PetFilter(), None, 1) == ([], None)


async def test_a_batch_with_more_words_than_one_statement_takes_is_added(store: Store) -> None:
    name = " ".join("abcdefgh")
    await store.write(create_pets([NewPet(name, 1)] * 100))
    assert len(await stored_words(store)) == 100 * (7 + 6)
    assert await walk(store, "h") == [*range(1, 101)]
