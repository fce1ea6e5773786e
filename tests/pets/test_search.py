"""Search animals by the words of their names, and prepare animals for that."""

import asyncio
from collections.abc import Sequence
from itertools import count
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from petstore.databases.contract import Reader, Row, Statement, Store
from petstore.databases.pages import Matches
from petstore.domain.words import MatchPosition, first_word, words_of
from petstore.events.store import Change
from petstore.pets import search
from petstore.pets.model import NewPet, Pet, PetFilter, PetPatch
from petstore.pets.search import MAX_SCANNED, search_pets
from petstore.pets.store import delete_pet, update_pet
from support.changes import create_pet, create_pets
from support.exploration import explored
from support.memory_folder import folder_in_memory
from support.stores import open_store

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
        "bel",
        "SS",
        "STRASS",
        "straß",
        "i",
        "z",
        "\u03c2",
        "FFI",
        "\U0001f436\U0001f3fd",
        "be\u0301",
        "mr",
        "MR. DAR",
        "bean and mr",
        "and",
        "o'",
        "bella be",
        "belinda  bella",
        "rex \U0001f436",
        "?",
        "c+",
        "w6",
        "a\U0001f436a",
        "w1 w2 w",
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
    """Return what sorts an animal, if a search finds it."""
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
    for prefix in PREFIXES:
        wanted = expected(pets, prefix)
        for limit in (1, 2, 100):
            pages = await walk(store, prefix, limit=limit)
            assert [pet for page in pages for pet in page] == wanted, prefix
            assert all(len(page) == limit for page in pages[:-1])
            assert pages[-1] or not wanted


async def test_animals_with_the_same_name_are_sorted_by_id(store: Store) -> None:
    await store.write(create_pets([NewPet("Bella", 1)] * 25))
    assert ids(await walk(store, "bella", limit=4)) == list(range(1, 26))


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


async def test_a_page_reads_a_bounded_number_of_animals(store: Store) -> None:
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
def test_animals_that_existed_throughout_are_found_exactly_once(
    names: list[str], prefix: str, limit: int, changes: list[list[tuple[str, int]]]
) -> None:
    asyncio.run(walk_while_others_work(names, prefix, limit, changes))


async def rename(store: Store, pet_id: int, name: str) -> None:
    unit = update_pet(Change(NOW), pet_id, PetPatch(name))
    await store.write(unit)


@pytest.mark.parametrize("name", ["Ada", "BELLA", "bella"])
async def test_a_renamed_animal_is_found_by_its_new_name_at_once(store: Store, name: str) -> None:
    await add(store, ["Bella"])
    await rename(store, 1, name)
    assert ids(await walk(store, name)) == [1]
    assert ids(await walk(store, "Bel")) == ([] if name == "Ada" else [1])


async def test_a_change_of_another_field_does_not_move_the_animal(store: Store) -> None:
    await add(store, ["Bella"])
    patch = PetPatch(category_id=7, status="sold")
    unit = update_pet(Change(NOW), 1, patch)
    await store.write(unit)
    assert ids(await walk(store, "bel")) == [1]
