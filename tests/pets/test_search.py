"""Search pets by the words of their names, and prepare pets for that."""

import asyncio
import random
from collections.abc import Sequence
from itertools import count
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from petstore.databases.contract import Reader, Row, Statement, Store
from petstore.databases.pages import Matches
from petstore.domain.words import MAX_WORDS, MatchPosition, first_word, word_keys_of, words_of
from petstore.events.store import Change
from petstore.pets import search
from petstore.pets.model import NewPet, Pet, PetFilter, PetPatch
from petstore.pets.search import MAX_SCANNED, search_pets
from petstore.pets.store import delete_pet, update_pet
from support.changes import create_pet, create_pets
from support.exploration import explored
from support.memory_folder import folder_in_memory
from support.stores import do, open_store

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOW = 1_800_000_000_000
NAMES = (
    "Bella",
    "bella",
    "BELLA II",
    "Béla",
    "Be\u0301la",
    "Straße",
    "STRASSE",
    "strasbourg",
    "İstanbul",
    "istanbul",
    "\u0131stanbul",
    "\u039f\u0394\u039f\u03a3",
    "\u03bf\u03b4\u03bf\u03c2",
    "\u03bf\u03b4\u03bf\u03c3 2",
    "\U0001f436",
    "\U0001f436\U0001f3fd Rex",
    "\ufb01lou",
    "Filou",
    "\ud7ff",
    "\ud7ff\U0010ffff",
    "\ue000",
    "\U0010ffff",
    "\U0010ffff\U0010ffff",
    "ΐ" * 255,
    "ΐ" * 254 + "b",
    "\U0001d1c0" * 255,
    "\ufb03" * 255,
    " Rex",
    "\u0001",
    "%",
    "_ella",
    "b\\",
    "日本語",
    "Bella",
    "Mr. Darcy",
    "Darcy Abel",
    "Mr. D\u00e4rcy",
    "Mr. Bean and Mr. Darcy",
    "O'Brien",
    "Jean-Luc",
    "Bella Belinda Bella",
    "\U0001f436Rex \U0001f436",
    "!!! ?",
    "\u0001 \u0002 ! \u0001",
    "C++",
    "\ufdfa" * 255,
    "a\U0001f436" * 127,
    " ".join(f"w{number}" for number in range(70))[:255],
)
PREFIXES = (
    *(name[:size] for name in NAMES for size in (1, 3, 100)),
    *(
        *("bel", "SS", "STRASS", "straß", "i", "z", "\u03c2", "FFI", "\U0001f436\U0001f3fd"),
        *("be\u0301", "mr", "MR. DAR", "bean and mr", "and", "o'", "bella be", "belinda  bella"),
        *("rex \U0001f436", "?", "c+", "w6", "a\U0001f436a", "w1 w2 w"),
    ),
)


class CountingReader:
    """A reader that counts the statements it runs, and their rows."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.statements = 0
        self.rows = 0

    async def read(self, statement: Statement) -> list[Row]:
        rows = await self._reader.read(statement)
        self.statements += 1
        self.rows += len(rows)
        return rows


async def walk(
    store: Reader, prefix: str, wanted: PetFilter | None = None, limit: int = 100
) -> list[list[Pet]]:
    """Return all pages of a search."""
    pages: list[list[Pet]] = []
    page: Matches[Pet] = Matches([], None)
    while not pages or page.next_after is not None:
        page = await search_pets(store, prefix, wanted or PetFilter(), page.next_after, limit)
        pages.append(page.items)
    return pages


def position(pet: Pet, text: str) -> tuple[str, str, int] | None:
    """Return what sorts a pet, if a search finds it."""
    words, (*whole, beginning) = words_of(pet.name), words_of(text)
    size = len(whole)
    places = [
        place
        for place in range(len(words) - size)
        if [*words[place : place + size]] == whole and words[place + size].startswith(beginning)
    ]
    if not places:
        return None
    if whole:
        return ("", min(" ".join(words[place:]) for place in places), pet.id)
    return (min(words[place] for place in places), " ".join(words)[:400], pet.id)


def expected(pets: Sequence[Pet], text: str) -> list[Pet]:
    """Return those of ``pets`` that a search finds, sorted, as Python does it."""
    found = {pet.id: position(pet, text) for pet in pets}
    return sorted((pet for pet in pets if found[pet.id]), key=lambda pet: found[pet.id] or ())


def ids(pages: list[list[Pet]]) -> list[int]:
    return [pet.id for page in pages for pet in page]


async def add(store: Store, names: Sequence[str]) -> list[Pet]:
    return [await store.write(create_pet(NewPet(name, 1))) for name in names]


# What a search finds


async def test_hostile_names_are_sorted_the_same_on_every_database(store: Store) -> None:
    pets = await add(store, NAMES)
    pets += await store.write(create_pets([NewPet("Bella", 1)] * 25))  # sorted by id
    for prefix in PREFIXES:
        wanted = expected(pets, prefix)
        for limit in (1, 2, 100):
            pages = await walk(store, prefix, limit=limit)
            assert [pet for page in pages for pet in page] == wanted, prefix
            assert all(len(page) == limit for page in pages[:-1])
            assert pages[-1] or not wanted


async def test_a_search_combines_with_the_other_filters(store: Store) -> None:
    await store.write(
        create_pets(
            NewPet(f"Pet {n:03}", n % 3, "sold" if n % 2 else "available") for n in range(40)
        )
    )
    both = PetFilter("sold", 2)
    names = [pet.name for page in await walk(store, "PET 0", both, 2) for pet in page]
    assert names == [f"Pet {n:03}" for n in range(40) if n % 2 and n % 3 == 2]


async def test_a_search_among_ids_returns_only_those_sorted_by_name(store: Store) -> None:
    pets = await add(store, NAMES)
    chosen = (9_999, *(pet.id for pet in pets if pet.id % 2), 1)
    for prefix in ("b", "BEL", "z"):
        for limit in (1, 2, 100):
            pages = await walk(store, prefix, PetFilter(UNSET, 1, chosen), limit)
            wanted = expected([pet for pet in pets if pet.id % 2], prefix)
            assert [pet for page in pages for pet in page] == wanted
    assert await walk(store, "b", PetFilter("sold", 1, chosen)) == [[]]


@pytest.mark.parametrize("wanted", [PetFilter(), PetFilter(ids=(3, 2, 1))])
async def test_several_words_in_the_middle_sort_by_what_follows(
    store: Store, wanted: PetFilter
) -> None:
    await add(store, ["Old Mr. Darcy II", "Young Mr. Dar", "Mr. Darcy"])
    page = await search_pets(store, "mr dar", wanted, None, 5)
    assert [pet.id for pet in page.items] == [2, 3, 1]


@pytest.mark.parametrize("wanted", [PetFilter(), PetFilter(category_id=1), PetFilter(ids=(1, 2))])
async def test_a_cursor_of_another_search_is_a_valid_position(
    store: Store, wanted: PetFilter
) -> None:
    await add(store, ["Bella", "Berta"])

    async def found(key: str, last_id: int) -> list[int]:
        page = await search_pets(
            store, "be", wanted, MatchPosition(first_word(key), key, last_id), 5
        )
        return [pet.id for pet in page.items]

    assert await found("a", 7) == [1, 2]
    assert await found("be", 7) == [1, 2]
    assert await found("bella", 0) == [1, 2]
    assert await found("bella", 1) == [2]
    assert await found("bf", 0) == []
    assert await found("\U0010ffff", 2**63 - 1) == []


# What a page costs


async def test_a_page_reads_a_bounded_number_of_pets(store: Store) -> None:
    size = 2 * MAX_SCANNED + 50
    await store.write(create_pets([NewPet("Bella", 1, "sold")] * size))
    last = await store.write(create_pet(NewPet("Bellatrix", 1, "available")))
    reader = CountingReader(store)
    page = await search_pets(reader, "bel", PetFilter("available"), None, 20)
    assert page == ([], MatchPosition("bella", "bella", MAX_SCANNED))
    assert (reader.rows, reader.statements) == (MAX_SCANNED, 10)
    assert await walk(store, "bel", PetFilter("available")) == [[], [], [last]]


async def test_a_page_without_other_filters_reads_one_row_more_than_it_shows(store: Store) -> None:
    await store.write(create_pets([NewPet("Bella", 1, "sold")] * 50))
    reader = CountingReader(store)
    await search_pets(reader, "bel", PetFilter(), None, 20)
    assert (reader.rows, reader.statements) == (21, 1)


async def test_a_page_stops_reading_once_it_is_full(store: Store) -> None:
    await store.write(create_pets([NewPet("Bella", 1, "sold")] * 500))
    reader = CountingReader(store)
    page = await search_pets(reader, "bel", PetFilter("sold"), None, 20)
    assert page.next_after == MatchPosition("bella", "bella", 20)
    assert reader.statements == 1


async def test_a_page_passes_in_few_statements_over_what_other_words_have_found(
    store: Store,
) -> None:
    many = " ".join(f"b{number:02}" for number in range(60))
    await add(store, [f"bella {many}"] * 300)
    reader = CountingReader(store)
    page = await search_pets(reader, "b", PetFilter(), None, 300)
    assert (len(page.items), page.next_after is None) == (300, False)
    assert reader.statements <= MAX_SCANNED / 200 + 1


async def test_a_page_passes_over_long_names_without_dividing_them_anew(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(
        store, ["aa ab ac ad " + "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 200] * 20
    )
    divided = Mock(wraps=words_of)
    monkeypatch.setattr(search, "words_of", divided)
    assert len(ids(await walk(store, "a", limit=1))) == 20
    assert {each.args for each in divided.call_args_list} == {("a",)}


@pytest.mark.parametrize("name", ["\x01 \x02", "\N{SQUARE APAATO}" * 255])
async def test_a_name_that_is_one_word_is_found_by_all_of_it(store: Store, name: str) -> None:
    await add(store, [name])
    assert ids(await walk(store, name[:100])) == [1]


# What changes while somebody walks


actions = st.tuples(st.sampled_from(["add", "delete", "rename"]), st.integers(0, 99))
some_names = st.lists(st.sampled_from(NAMES), max_size=8)


async def walk_while_others_work(
    names: list[str], prefix: str, limit: int, changes: list[list[tuple[str, int]]]
) -> None:
    with folder_in_memory() as folder:
        async with open_store(folder / "petstore.db") as store:
            present = {pet.id: pet for pet in await add(store, names)}
            throughout = dict(present)
            seen: list[Pet] = []
            after = None
            for number in count():
                page = await search_pets(store, prefix, PetFilter(), after, limit)
                seen += page.items
                after = page.next_after
                if after is None:
                    break
                for kind, which in changes[number] if number < len(changes) else ():
                    chosen = sorted(present)[which % len(present)] if present else 0
                    if kind == "add" or not present:
                        new = NewPet(NAMES[which % len(NAMES)], 1)
                        pet = await store.write(create_pet(new))
                        present[pet.id] = pet
                        continue
                    throughout.pop(chosen, None)
                    del present[chosen]
                    if kind == "delete":
                        await store.write(delete_pet(Change(NOW), chosen))
                    else:
                        # To a name that no prefix of these tests finds.
                        patch = PetPatch("\u2603")
                        await store.write(update_pet(Change(NOW), chosen, patch))
    assert seen == expected(seen, prefix)
    assert len({pet.id for pet in seen}) == len(seen)
    wanted = expected(list(throughout.values()), prefix)
    assert [pet for pet in seen if pet.id in throughout] == wanted


@explored(25)
@given(
    names=some_names,
    prefix=st.sampled_from(PREFIXES),
    limit=st.integers(1, 3),
    changes=st.lists(st.lists(actions, max_size=4), max_size=6),
)
def test_pets_that_existed_throughout_are_found_exactly_once(
    names: list[str], prefix: str, limit: int, changes: list[list[tuple[str, int]]]
) -> None:
    asyncio.run(walk_while_others_work(names, prefix, limit, changes))


# The keys of words follow every change


async def rename(store: Store, pet_id: int, name: str) -> None:
    await store.write(update_pet(Change(NOW), pet_id, PetPatch(name)))


async def stored_words(store: Store) -> set[tuple[str, int]]:
    rows = await store.write(do("SELECT word_key, pet_id FROM pet_words"))
    return {(key, pet_id) for key, pet_id in rows}


SYLLABLES = ("be", "bé", "BE", "Mr.", "mr", "Därcy", "darcy", "o'br", "\U0001f436", "!", "ß")
BETWEEN = ("", "", " ", "-", "  ", "'")
TEXTS = (
    *("b", "be", "Bé", "mr", "mr d", "MR. BE", "dar", "dä", "o'b", "br", "\U0001f436", "!"),
    *("ss", "be be", " be"),
)


@pytest.mark.parametrize("seed", range(4))
async def test_searches_find_what_they_should_after_any_change(store: Store, seed: int) -> None:
    draw, pets = random.Random(seed), dict[int, Pet]()  # noqa: S311
    for _ in range(60):
        parts = [draw.choice(SYLLABLES) + draw.choice(BETWEEN) for _ in range(draw.randint(1, 4))]
        name, kind = "".join(parts).strip() or "x", draw.choice(["add"] * 3 + ["rename", "delete"])
        if kind == "add" or not pets:
            (pet,) = await add(store, [name])
            pets[pet.id] = pet
        elif kind == "rename":
            pet_id = draw.choice([*pets])
            await rename(store, pet_id, name)
            pets[pet_id] = Pet(pet_id, name, 1)
        else:
            pet_id = draw.choice([*pets])
            await store.write(delete_pet(Change(NOW), pet_id))
            del pets[pet_id]
        text, limit = draw.choice(TEXTS), draw.choice([1, 2, 3, 100])
        found = ids(await walk(store, text, limit=limit))
        assert found == [pet.id for pet in expected([*pets.values()], text)], text
        assert await stored_words(store) == {
            (key, pet.id) for pet in pets.values() for key in word_keys_of(words_of(pet.name))
        }


@pytest.mark.parametrize(
    "name",
    [
        *("Mr. Darcy", "a\U0001f436" * 127, "! ? \" \\ ' !", "a" * 101 + " " + "b" * 101),
        *("\ufb03" * 200 + " rex", "\ufdfa " * 100 + " ".join(f"w{n}" for n in range(10))),
    ],
)
async def test_no_word_of_a_deleted_or_renamed_pet_is_left(store: Store, name: str) -> None:
    await add(store, [name])
    await store.write(create_pets([NewPet(name, 1)]))
    assert await stored_words(store) >= {(key, 1) for key in word_keys_of(words_of(name))}
    await store.write(update_pet(Change(NOW), 2, PetPatch(category_id=7)))
    assert len({pet_id for _, pet_id in await stored_words(store)}) == 2
    await rename(store, 2, "Rex")
    await store.write(delete_pet(Change(NOW), 1))
    assert await stored_words(store) == set()


async def test_the_first_words_of_the_longest_names_are_found(store: Store) -> None:
    name = " ".join(f"w{number:02}" for number in range(60))
    await add(store, [name, "a\U0001f436" * 127])
    last = f"w{MAX_WORDS - 1:02}"
    found = {last: [1], f"w{MAX_WORDS - 2:02} {last}": [1], f"w{MAX_WORDS:02}": []}
    for text, wanted in {**found, "\U0001f436 a": [2], " ": [], "\u2003": []}.items():
        assert ids(await walk(store, text)) == wanted
    assert len(await stored_words(store)) <= 4 * MAX_WORDS


async def test_a_batch_with_more_words_than_one_statement_takes_is_added(store: Store) -> None:
    await store.write(create_pets([NewPet(" ".join("abcdefgh"), 1)] * 100))
    assert len(await stored_words(store)) == 100 * (7 + 6)
    assert ids(await walk(store, "h")) == [*range(1, 101)]
