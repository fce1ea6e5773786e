"""Search pets by the words of their names, over HTTP and below, and list the newest first."""

import asyncio
import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import httpx
import pytest

from petstore.databases.contract import Reader, Row, Statement, Store
from petstore.databases.pages import Page
from petstore.databases.words import MAX_SCANNED
from petstore.domain.words import finds, terms_of, typed_words, words_of
from petstore.events.store import Change
from petstore.pets.model import NewPet, Pet, PetFilter, PetPatch
from petstore.pets.store import PETS_BY_WORD, delete_pet, delete_untouched, search_pets, update_pet
from support.cases import case
from support.changes import create_pet, create_pets
from support.error_body import assert_error
from support.races import by_hand
from support.service import Service
from support.stores import do

pytestmark = pytest.mark.anyio

NOW = 1_800_000_000_000
NAMES = (
    *("Bella", "bella", "BELLA II", "B\u00e9la", "Be\u0301la", "Stra\u00dfe", "STRASSE"),
    *("strasbourg", "\u0130stanbul", "\u0131stanbul", "\U0001f436", "\U0001f436\U0001f3fd Rex"),
    *("\ufb01lou", "\ud7ff", "\ue000", "\U0010ffff" * 2, "\u0390" * 255, "\u0390" * 254 + "b"),
    *("\U0001d1c0" * 255, "\ufb03" * 255, "\ufdfa" * 255, " Rex", "%", "\x7f", "b\\\\", "100%"),
    *("\u65e5\u672c\u8a9e", "\u5c0f\u82b1\u732b", "Mr. Darcy", "Darcy Abel", "Mr. D\u00e4rcy"),
    *("Mr. Bean and Mr. Darcy", "O'Brien", "Jean-Luc", "K-9", "Bella the brown one", "!!! ?"),
    *(
        "C++",
        "a\U0001f436" * 127,
        "\u05de\u05dc\u05db\u05d4",
        "\u202bRTL\u202c",
        "\u0e41\u0e21\u0e27",
    ),
    " ".join(f"w{number}" for number in range(70))[:255],
)
TEXTS = (
    *(name[:size] for name in NAMES for size in (1, 3, 100)),
    *("brown bel", "BEL bro", "obrien", "o'b", "k9", "\u732b", "mr dar", "dar mr", "strass", "luc"),
    *("%", "_", "\\\\", "?", "\U0001f436", "w1 w2 w3 w4 w5 w6 w7 w0 w9", "w8", " ", "bella" * 3),
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
    store: Reader, text: str, wanted: PetFilter | None = None, limit: int = 100
) -> list[list[int]]:
    """Return the ids on each page of a search."""
    pages: list[list[int]] = []
    page: Page[Pet] = Page([], None)
    while not pages or page.next_after is not None:
        page = await search_pets(store, text, wanted or PetFilter(), page.next_after, limit)
        pages.append([pet.id for pet in page.items])
    return pages


async def found(store: Store, text: str, limit: int = 100) -> list[int]:
    return [pet_id for page in await walk(store, text, limit=limit) for pet_id in page]


def expected(pets: Sequence[Pet], text: str) -> list[int]:
    typed = typed_words(text)
    return [pet.id for pet in pets if typed and finds(typed, words_of(pet.name))]


async def assert_indexed(store: Store, pets: Sequence[Pet]) -> None:
    await PETS_BY_WORD.update(store)
    await store.write(
        do(
            "/*sqlite*/ CREATE VIRTUAL TABLE IF NOT EXISTS temp.vocabulary"
            " USING fts5vocab (main, pet_words, instance) /*end*/ /*pg SELECT 1 */"
        )
    )
    terms = "/*sqlite*/ term, doc FROM vocabulary /*end*/ /*pg term, item_id FROM pet_words */"
    rows = await store.write(do(f"SELECT {terms}"))
    expected = {(term, pet.id) for pet in pets for term in terms_of(pet.name).split(" ") if term}
    assert {(term, item_id) for term, item_id in rows} == expected


async def add(store: Store, names: Sequence[str]) -> list[Pet]:
    return [await store.write(create_pet(NewPet(name, 1))) for name in names]


@pytest.mark.each_database
async def test_any_words_find_names_by_ascending_id(store: Store) -> None:
    pets = await add(store, NAMES)
    pets += await store.write(create_pets([NewPet("Bella", 1)] * 225))
    for _ in ("not yet indexed", "indexed"):
        for text in TEXTS:
            wanted = expected(pets, text)
            for limit in (2, 100):
                assert await found(store, text, limit=limit) == wanted, text
        await PETS_BY_WORD.update(store)


@pytest.mark.each_database
async def test_a_page_reads_a_bounded_number_of_pets(store: Store) -> None:
    await store.write(create_pets([NewPet("Bella", 1, "sold")] * (2 * MAX_SCANNED + 50)))
    last = await store.write(create_pet(NewPet("Bellatrix the brown", 1, "available")))
    await PETS_BY_WORD.update(store)
    reader = CountingReader(store)
    await search_pets(reader, "bel", PetFilter(), None, 20)
    assert (reader.rows, reader.statements) == (21, 1)
    reader = CountingReader(store)
    page = await search_pets(reader, "bel", PetFilter("available"), None, 20)
    assert (page.items, page.next_after) == ([], MAX_SCANNED)
    assert (reader.rows, reader.statements) == (MAX_SCANNED, 10)
    assert await walk(store, "bel", PetFilter("available")) == [[], [], [last.id]]
    # Of several words, the rarest one leads.
    assert await walk(store, "bel brown") == [[last.id]]
    assert await walk(store, "bel nobody") == [[]]


async def test_a_page_compares_few_pets_that_cost_much_and_reads_them_at_once(store: Store) -> None:
    pets = [NewPet(name, 1) for name in ["Rex"] * 300 + ["\ufdfa" * 255] * 300]
    last = (await store.write(create_pets([*pets, NewPet("Bella", 1)])))[-1]
    reader = CountingReader(store)
    page = await search_pets(reader, "bella", PetFilter(), None, 1)
    assert page.next_after is not None
    assert page.next_after < 450
    assert reader.statements == 3
    assert (await found(store, "bella", limit=1)) == [last.id]


@pytest.mark.each_database
async def test_searches_find_what_they_should_after_any_change(store: Store) -> None:
    draw, pets = random.Random(1), dict[int, Pet]()  # noqa: S311
    for _ in range(60):
        name, kind = draw.choice(NAMES), draw.choice(["add"] * 3 + ["rename", "delete"])
        pet_id = draw.choice([*pets]) if pets else 0
        if kind == "add" or not pets:
            (pet,) = await add(store, [name])
            pets[pet.id] = pet
        elif kind == "rename":
            pets[pet_id] = await store.write(update_pet(Change(NOW), pet_id, PetPatch(name)))
        else:
            await store.write(delete_pet(Change(NOW), pet_id))
            del pets[pet_id]
        text = draw.choice(TEXTS)
        assert await found(store, text) == expected([*pets.values()], text), text
        if draw.random() < 0.3:  # some that are changed are indexed, and some are not
            await assert_indexed(store, [*pets.values()])
    await store.write(delete_untouched(Change(NOW), [*pets.values()]))
    await assert_indexed(store, [])


@pytest.mark.each_database
async def test_pets_that_change_while_they_are_indexed_keep_no_word_of_before(store: Store) -> None:
    left: list[Pet] = []
    for _ in range(20):
        one, other, third = await add(store, ["Bella", "Rex", "Mr. Darcy"])
        renamed, *_ = await asyncio.gather(
            store.write(update_pet(Change(NOW), one.id, PetPatch("Bello"))),
            PETS_BY_WORD.update(store),
            store.write(delete_pet(Change(NOW), other.id)),
            PETS_BY_WORD.update(store),
        )
        left += [renamed, third]
        await assert_indexed(store, left)


def test_items_that_others_have_locked_are_left_to_them() -> None:
    assert by_hand(PETS_BY_WORD.index_items([7], {}), []) == 0


async def test_others_run_while_long_names_are_indexed(store: Store) -> None:
    await store.write(create_pets([NewPet("\ufdfa" * 250 + str(n), 1) for n in range(100)]))
    began = asyncio.get_running_loop().time()
    times, indexing = [began], asyncio.create_task(PETS_BY_WORD.update(store))
    while not indexing.done():
        await asyncio.sleep(0)
        times.append(asyncio.get_running_loop().time())
    await indexing
    assert max(after - before for before, after in pairwise(times)) < (times[-1] - began) / 2


# Over HTTP

SHOP = (
    *(NewPet("Bella", 1, "available"), NewPet("Rex", 1, "sold"), NewPet("Straße", 2)),
    *(NewPet("BELLO", 2, "sold"), NewPet("Ébène", 1), NewPet("bella", 2, "available")),
    *(NewPet("Belinda", 1, "sold"), NewPet("Mr. D\u00e4rcy", 3), NewPet("Darcy Rex", 3, "sold")),
)


@pytest.fixture
async def token(service: Service) -> str:
    """The token of a key without limits, of a store with a few pets."""
    await service.store.write(create_pets(SHOP))
    return (await service.issue()).token


async def get(service: Service, token: str, **query: Any) -> httpx.Response:
    return await service.request("GET", "/v1/pets", token, params=query)


async def asked_pages(service: Service, token: str, **query: Any) -> list[list[int]]:
    """Return the ids on every page."""
    pages = []
    page = await get(service, token, **query)
    while True:
        assert page.status_code == 200, page.text
        pages.append([pet["id"] for pet in page.json()])
        if "next" not in page.links:
            return pages
        page = await service.request("GET", page.links["next"]["url"], token)


async def test_an_invalid_search_or_order_and_a_cursor_of_another_are_refused(
    service: Service, token: str
) -> None:
    name, has = "name: expected 1 to 100 characters", "hasStatus: expected true or false"
    sort = "sort: expected one of 'id', '-id'"
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        *(({"name": value}, name) for value in ("", "\U0001f436" * 101, "a\0")),
        *(({"sort": value}, sort) for value in ("", "name", "ID", "+id", "id,-id", " id")),
        ({"name": "b", "sort": "-id"}, "sort: expected no sort together with name"),
        *(({"hasStatus": value}, has) for value in ("", "1", "True", "null")),
        (
            {"hasStatus": "false", "status": "sold"},
            "hasStatus: expected true, or no status beside it",
        ),
        ({"hasStatus": ["true", "true"]}, "hasStatus: expected once, got it twice"),
    )
    for query, expected in refused:
        with case(query):
            response = await get(service, token, **query)
            assert assert_error(response, 400, "invalid_parameter") == expected
    orders: tuple[dict[str, str], ...] = ({}, {"sort": "-id"})
    for given, taken in (orders, orders[::-1]):
        with case(given, taken):
            url = httpx.URL((await get(service, token, limit=1, **given)).links["next"]["url"])
            response = await get(service, token, cursor=url.params["cursor"], **taken)
            message = assert_error(response, 400, "invalid_parameter")
            assert message.startswith("cursor: expected")


@pytest.mark.each_database
async def test_results_come_by_id_in_pages_of_20_or_of_the_limit(
    service: Service, token: str
) -> None:
    longest = ("\U0001d1c0", "&")
    news = [NewPet(character * 255, 4) for character in longest for _ in range(2)]
    await service.store.write(create_pets(news))
    expected: list[tuple[dict[str, Any], list[list[int]]]] = [
        ({"name": "BEL"}, [[1, 4, 6, 7]]),
        ({"name": "bel", "limit": 3}, [[1, 4, 6], [7]]),
        ({"name": "rex darcy"}, [[9]]),
        ({"name": "bella", "limit": 1}, [[1], [6]]),
        ({"name": "STRASS"}, [[3]]),
        ({"name": "e\u0301b"}, [[5]]),
        ({"name": "MR. DAR"}, [[8]]),
        ({"name": "r", "limit": 1}, [[2], [9]]),
        ({"name": "d\u00e4", "status": "sold"}, [[9]]),
        ({"name": "darcy", "id": [8, 9, 1], "limit": 1}, [[8], [9]]),
        ({"name": "bel", "status": "sold", "limit": 1}, [[4], [7]]),
        ({"name": "bel", "status": "sold", "categoryId": 2}, [[4]]),
        ({"name": "bel", "id": [6, 2, 1, 99], "limit": 2}, [[1, 6]]),
        ({"name": "z"}, [[]]),
        ({"sort": "-id", "limit": 7}, [[13, 12, 11, 10, 9, 8, 7], [6, 5, 4, 3, 2, 1]]),
        ({"sort": "-id", "status": "sold", "limit": 2}, [[9, 7], [4, 2]]),
        ({"sort": "-id", "id": [2, 5, 3], "limit": 2}, [[5, 3], [2]]),
        ({"sort": "id", "limit": 7}, [[1, 2, 3, 4, 5, 6, 7], [8, 9, 10, 11, 12, 13]]),
        ({"status": "sold", "id": [9, 2, 2, 6, 4], "limit": 2}, [[2, 4], [9]]),
        ({"hasStatus": "false", "limit": 4}, [[3, 5, 8, 10], [11, 12, 13]]),
        ({"hasStatus": "false", "sort": "-id", "categoryId": 2}, [[3]]),
        ({"hasStatus": "false", "name": "d"}, [[8]]),
        ({"hasStatus": "true", "limit": 4}, [[1, 2, 4, 6], [7, 9]]),
        ({"hasStatus": "true", "sort": "-id", "id": [1, 3, 9], "limit": 1}, [[9], [1]]),
        ({"hasStatus": "true", "status": "sold", "name": "be"}, [[4, 7]]),
        # The longest query that there is.
        ({"name": longest[0] * 100, "limit": 1, "id[]": [*range(100)]}, [[10], [11]]),
        ({"name": longest[1] * 100, "limit": 1, "id[]": [*range(100)]}, [[12], [13]]),
    ]
    for query, pages in expected:
        with case(query):
            assert await asked_pages(service, token, **query) == pages
    await service.store.write(create_pets([NewPet("Kim", 5)] * 21))
    assert await asked_pages(service, token, categoryId=5) == [[*range(14, 34)], [34]]
