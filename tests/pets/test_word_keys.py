"""The keys of words follow every change, also those by processes of version 2.0.0."""

import logging
import random
from typing import NamedTuple

import pytest

from petstore.databases.contract import Store
from petstore.domain.names import search_key
from petstore.domain.words import MAX_WORDS, first_word, word_keys_of, words_of
from petstore.keys.store import unconditional
from petstore.pets.model import NewPet, PetFilter, PetPatch
from petstore.pets.search import fill_name_keys, search_pets
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


# What processes of version 2.0.0 do


async def add_as_before(store: Store, name: str) -> int:
    sql = (
        "INSERT INTO pets (name, category_id, status, name_key) VALUES (?1, 1, NULL, ?2)"
        " RETURNING id"
    )
    return int((await store.write(do(sql, name, search_key(name))))[0][0])


async def rename_as_before(store: Store, pet_id: int, name: str) -> None:
    sql = "UPDATE pets SET (name, category_id, status) = (?1, 1, NULL) WHERE id = ?2"
    await store.write(do(sql, name, pet_id))
    sql = "UPDATE pets SET name_key = ?1 WHERE id = ?2"
    await store.write(do(sql, search_key(name), pet_id))


async def delete_as_before(store: Store, pet_id: int) -> None:
    await store.write(do("DELETE FROM pets WHERE id = ?1", pet_id))


# What this version does


async def add(store: Store, name: str) -> int:
    return (await store.write(create_pet(NewPet(name, 1)))).id


async def rename(store: Store, pet_id: int, name: str) -> None:
    unit = update_pet(pet_id, PetPatch(name), NOW, unconditional, strict_categories=False)
    await store.write(unit)


async def delete(store: Store, pet_id: int) -> None:
    await store.write(delete_pet(pet_id, NOW, unconditional))


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
    """An animal as it should be found: by its words, or by its beginning as version 2.0.0 does."""

    id: int
    name: str
    is_prepared: bool

    def position(self, text: str) -> tuple[str, str, int] | None:
        """Return what sorts it, if a search finds it."""
        key = search_key(self.name)
        if not self.is_prepared:
            is_found = key.startswith(search_key(text))
            return (first_word(key), key, self.id) if is_found else None
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
        keys = word_keys_of(words_of(self.name)) if self.is_prepared else []
        return {(key, self.id) for key in keys}


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
        """Make one change, by a process of this version or the one before."""
        is_new = self.random.random() < 0.6
        kind = self.random.choice(["add", "add", "add", "rename", "delete", "prepare"])
        if kind == "prepare":
            await fill_name_keys(self.store)
            self.animals = {
                each.id: each._replace(is_prepared=True) for each in self.animals.values()
            }
        elif kind == "add" or not self.animals:
            name = self.name()
            pet_id = await (add if is_new else add_as_before)(self.store, name)
            self.animals[pet_id] = Known(pet_id, name, is_new)
        elif kind == "rename":
            known, name = self.random.choice([*self.animals.values()]), self.name()
            await (rename if is_new else rename_as_before)(self.store, known.id, name)
            is_prepared = known.is_prepared if name == known.name else is_new
            self.animals[known.id] = Known(known.id, name, is_prepared)
        else:
            pet_id = self.random.choice([*self.animals])
            await (delete if is_new else delete_as_before)(self.store, pet_id)
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


async def test_an_animal_of_the_version_before_is_found_by_its_beginning_until_it_is_prepared(
    store: Store,
) -> None:
    await add_as_before(store, "Mr. D\u00e4rcy")
    await add(store, "Mr. D\u00e4rcy")
    assert await walk(store, "mr") == [2, 1]
    assert await walk(store, "mr. d\u00e4") == [2, 1]
    assert await walk(store, "mr. da") == [2]
    assert await walk(store, "darcy") == [2]
    await fill_name_keys(store)
    for text in ("mr", "mr. d\u00e4", "mr. da", "darcy"):
        assert await walk(store, text, 1) == [1, 2]


async def test_an_animal_that_the_version_before_renames_loses_the_words_of_its_old_name(
    store: Store,
) -> None:
    await add(store, "Mr. Darcy")
    await rename_as_before(store, 1, "Old Rex")
    assert await stored_words(store) == set()
    assert await walk(store, "darcy") == await walk(store, "rex") == []
    assert await walk(store, "old r") == [1]
    await fill_name_keys(store)
    assert await stored_words(store) == {("rex old rex", 1)}
    assert await walk(store, "rex") == [1]


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
    for remove in (delete, delete_as_before):
        pet_id = await add(store, name)
        await store.write(create_pets([NewPet(name, 1)]))
        assert await stored_words(store) >= {(key, pet_id) for key in word_keys_of(words_of(name))}
        await rename(store, pet_id + 1, "Rex")
        await remove(store, pet_id)
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
async def test_a_text_of_white_space_finds_only_what_begins_with_it_and_is_not_prepared(
    store: Store, text: str
) -> None:
    await store.write(create_pets([NewPet("Scout the Molly", 1)] * 3))
    assert await search_pets(store, text, PetFilter(), None, 1) == ([], None)
    pet_id = await add_as_before(store, f"{text}Rex")
    assert await walk(store, text) == [pet_id]


async def test_a_batch_with_more_words_than_one_statement_takes_is_added(store: Store) -> None:
    name = " ".join("abcdefgh")
    await store.write(create_pets([NewPet(name, 1)] * 100))
    assert len(await stored_words(store)) == 100 * (7 + 6)
    assert await walk(store, "h") == [*range(1, 101)]


async def test_preparing_many_animals_adds_all_their_words(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "petstore.pets.search")
    await store.write(create_pets([NewPet("Mr. Darcy", 1)] * 250))
    await store.write(do("UPDATE pets SET words = NULL, name_key = 'mr. darcy'"))
    await fill_name_keys(store)
    assert len(await walk(store, "darcy")) == len(await stored_words(store)) == 250
    assert caplog.messages[-1] == "prepared 250 animals for searches by name"
