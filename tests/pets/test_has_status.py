"""List the animals with a status, or those without one."""

from itertools import product
from typing import Any

import httpx
import pytest
from msgspec import UNSET, UnsetType

from petstore.databases.contract import Store
from petstore.keys.model import SCOPES
from petstore.pets.model import NewPet, PetFilter, PetStatus
from petstore.pets.search import search_pets
from petstore.pets.store import count_pets, list_pets
from support.cases import case
from support.changes import create_pets
from support.error_body import assert_error
from support.service import Service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

STATUSES: tuple[PetStatus | UnsetType, ...] = (
    *("available", UNSET, "sold", UNSET, UNSET),
    *("pending", "available", UNSET, "sold"),
)
CATEGORIES: tuple[int | UnsetType, ...] = (UNSET, 0, 1)
PETS = tuple(
    NewPet(f"Bella {number}", number % 2, status) for number, status in enumerate(STATUSES)
)
WITHOUT, WITH = [2, 4, 5, 8], [1, 3, 6, 7, 9]


async def walk(service: Service, token: str, **query: Any) -> list[list[int]]:
    """Return the ids on every page."""
    page = await service.request("GET", "/v1/pets", token, params=query)
    pages = []
    while True:
        assert page.status_code == 200, page.text
        pages.append([pet["id"] for pet in page.json()])
        if "next" not in page.links:
            return pages
        page = await service.request("GET", page.links["next"]["url"], token)


@pytest.fixture
async def token(service: Service) -> str:
    """The token of a key, of a store with animals with and without a status."""
    await service.store.write(create_pets(PETS))
    return (await service.issue(scopes=frozenset(SCOPES))).token


async def get(service: Service, token: str, query: str) -> httpx.Response:
    return await service.request("GET", f"/v1/pets?{query}", token)


async def test_an_invalid_value_is_refused(service: Service, token: str) -> None:
    for value in ("", "1", "0", "True", "no", "null"):
        with case(value):
            response = await get(service, token, f"hasStatus={value}")
            message = assert_error(response, 400, "invalid_parameter")
            assert message == "hasStatus: expected true or false"
    response = await get(service, token, "hasStatus=true&hasStatus=true")
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "hasStatus: expected once, got it twice"


async def test_no_status_together_with_a_status_is_refused(service: Service, token: str) -> None:
    response = await get(service, token, "hasStatus=false&status=sold")
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "hasStatus: expected true, or no status beside it"


async def test_animals_are_listed_by_whether_they_have_a_status(
    service: Service, token: str
) -> None:
    expected: list[tuple[dict[str, Any], list[list[int]]]] = [
        ({"hasStatus": "false"}, [WITHOUT]),
        ({"hasStatus": "false", "limit": 3}, [WITHOUT[:3], WITHOUT[3:]]),
        ({"hasStatus": "false", "categoryId": 1}, [[2, 4, 8]]),
        ({"hasStatus": "false", "sort": "-id", "limit": 2}, [[8, 5], [4, 2]]),
        ({"hasStatus": "false", "id": [1, 2, 8], "limit": 1}, [[2], [8]]),
        ({"hasStatus": "false", "name": "bella"}, [WITHOUT]),
        ({"hasStatus": "false", "name": "bella", "limit": 3}, [WITHOUT[:3], WITHOUT[3:]]),
        ({"hasStatus": "false", "name": "4"}, [[5]]),
        ({"hasStatus": "true"}, [WITH]),
        ({"hasStatus": "true", "limit": 2}, [[1, 3], [6, 7], [9]]),
        ({"hasStatus": "true", "limit": 1}, [[each] for each in WITH]),
        ({"hasStatus": "true", "categoryId": 0, "limit": 1}, [[1], [3], [7], [9]]),
        ({"hasStatus": "true", "categoryId": 1}, [[6]]),
        ({"hasStatus": "true", "sort": "-id", "limit": 2}, [[9, 7], [6, 3], [1]]),
        ({"hasStatus": "true", "id": [1, 2, 8, 9], "limit": 1}, [[1], [9]]),
        ({"hasStatus": "true", "status": "sold"}, [[3, 9]]),
        ({"hasStatus": "true", "name": "bella", "limit": 4}, [WITH[:4], WITH[4:]]),
        ({"hasStatus": "true", "categoryId": 9}, [[]]),
    ]
    for query, pages in expected:
        with case(query):
            assert await walk(service, token, **query) == pages
            assert await walk(service, token, **query) == pages  # from memory, where there is one


async def test_a_change_of_status_shows_at_once(service: Service, token: str) -> None:
    for query in ("hasStatus=false", "hasStatus=true"):
        await get(service, token, query)
    await service.request("PATCH", "/v1/pets/2", token, json={"status": "sold"})
    assert [pet["id"] for pet in (await get(service, token, "hasStatus=false")).json()] == [4, 5, 8]
    await service.request("PATCH", "/v1/pets/1", token, json={"status": None})
    page = await get(service, token, "hasStatus=true")
    assert [pet["id"] for pet in page.json()] == [2, 3, 6, 7, 9]


async def test_parts_and_counts_agree_with_the_pages(store: Store) -> None:
    await store.write(create_pets(PETS))
    for has_status, category, limit in product((True, False), CATEGORIES, (1, 2, 4, 9)):
        wanted = PetFilter(UNSET, category, has_status=has_status)
        with case(wanted, limit):
            after, found, has_more = None, 0, True
            while has_more:
                page = await list_pets(store, wanted, after, limit)
                assert all(map(wanted.admits, page.items))
                after, found = page.next_after, found + len(page.items)
                has_more = after is not None
            for most in (found, found + 1, 1):
                assert await count_pets(store, wanted, most) == min(found, most)


@pytest.mark.parametrize("has_status", [True, False])
async def test_more_than_a_page_of_the_interface_is_listed(
    store: Store, *, has_status: bool
) -> None:
    await store.write(create_pets(PETS * 100))
    page = await list_pets(store, PetFilter(has_status=has_status), None, 350)
    assert len(page.items) == 350
    found = await search_pets(store, "bella", PetFilter(has_status=has_status), None, 350)
    assert len(found.items) == 350
