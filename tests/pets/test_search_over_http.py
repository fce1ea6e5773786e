"""Search pets by name, and list the newest first."""

from itertools import product
from typing import Any

import httpx
import pytest

from petstore.pets.model import NewPet
from support.cases import case
from support.changes import create_pets
from support.error_body import assert_error
from support.service import Service

pytestmark = pytest.mark.anyio

PETS = (
    *(NewPet("Bella", 1, "available"), NewPet("Rex", 1, "sold"), NewPet("Straße", 2)),
    *(NewPet("BELLO", 2, "sold"), NewPet("Ébène", 1), NewPet("bella", 2, "available")),
    *(NewPet("Belinda", 1, "sold"), NewPet("Mr. D\u00e4rcy", 3), NewPet("Darcy Rex", 3, "sold")),
)


@pytest.fixture
async def token(service: Service) -> str:
    """The token of a key without limits, of a store with a few pets."""
    await service.store.write(create_pets(PETS))
    return (await service.issue()).token


async def get(service: Service, token: str, **query: Any) -> httpx.Response:
    return await service.request("GET", "/v1/pets", token, params=query)


async def walk(service: Service, token: str, **query: Any) -> list[list[int]]:
    """Return the ids on every page."""
    pages = []
    page = await get(service, token, **query)
    while True:
        assert page.status_code == 200, page.text
        pages.append([pet["id"] for pet in page.json()])
        if "next" not in page.links:
            return pages
        page = await service.request("GET", page.links["next"]["url"], token)


# Refusals


async def test_an_invalid_search_or_order_is_refused(service: Service, token: str) -> None:
    name = "name: expected 1 to 100 characters"
    sort = "sort: expected one of 'id', '-id'"
    has = "hasStatus: expected true or false"
    both = "sort: expected no sort together with name"
    refused: tuple[tuple[dict[str, Any], str], ...] = (
        *(({"name": value}, name) for value in ("", "n" * 101, "\U0001f436" * 101, "a\0")),
        *(({"sort": value}, sort) for value in ("", "name", "ID", "+id", "id,-id", " id")),
        *(({"name": "b", "sort": value}, both) for value in ("-id",)),
        *(({"hasStatus": value}, has) for value in ("", "1", "0", "True", "no", "null")),
        (
            {"hasStatus": "false", "status": "sold"},
            "hasStatus: expected true, or no status beside it",
        ),
        ({"hasStatus": ["true", "true"]}, "hasStatus: expected once, got it twice"),
        ({"name": ["a", "b"]}, "name: expected once, got it twice"),
        ({"sort": ["id", "-id"]}, "sort: expected once, got it twice"),
    )
    for query, expected in refused:
        with case(query):
            response = await get(service, token, **query)
            assert assert_error(response, 400, "invalid_parameter") == expected


ORDERS: tuple[dict[str, str], ...] = ({}, {"sort": "-id"})


async def test_a_cursor_of_another_order_is_refused(service: Service, token: str) -> None:
    for given, taken in product(ORDERS, ORDERS):
        with case(given, taken):
            url = httpx.URL((await get(service, token, limit=1, **given)).links["next"]["url"])
            response = await get(service, token, cursor=url.params["cursor"], **taken)
            if given == taken:
                assert response.status_code == 200
            else:
                message = assert_error(response, 400, "invalid_parameter")
                assert message.startswith("cursor: expected")


async def test_a_broken_cursor_is_refused(service: Service, token: str) -> None:
    cursors = ("-AAAAAAAAABQ%0A", "AAAAAAAAABQ.YQ%0A", "AAAAAAAAABQ._w", "-")
    for order, cursor in product(("sort=-id", "name=b"), cursors):
        with case(order, cursor):
            response = await service.request("GET", f"/v1/pets?{order}&cursor={cursor}", token)
            message = assert_error(response, 400, "invalid_parameter")
            assert message.startswith("cursor: expected")


# Searches


@pytest.mark.each_database
async def test_search_results_come_by_id_and_are_paged(service: Service, token: str) -> None:
    expected: list[tuple[dict[str, Any], list[list[int]]]] = [
        ({"name": "BEL"}, [[1, 4, 6, 7]]),
        ({"name": "bel", "limit": 3}, [[1, 4, 6], [7]]),
        ({"name": "rex darcy"}, [[9]]),
        ({"name": "bella", "limit": 1}, [[1], [6]]),
        ({"name": "STRASS"}, [[3]]),
        ({"name": "rex"}, [[2, 9]]),
        ({"name": "darcy", "limit": 1}, [[8], [9]]),
        ({"name": "MR. DAR"}, [[8]]),
        ({"name": "r", "limit": 1}, [[2], [9]]),
        ({"name": "d\u00e4", "status": "sold"}, [[9]]),
        ({"name": "darcy", "id": [8, 9, 1], "limit": 1}, [[8], [9]]),
        ({"name": "eb"}, [[5]]),
        ({"name": "e\u0301b"}, [[5]]),
        ({"name": "bel", "status": "sold", "limit": 1}, [[4], [7]]),
        ({"name": "bel", "status": "sold", "categoryId": 2}, [[4]]),
        ({"name": "bel", "id": [6, 2, 1, 99], "limit": 1}, [[1], [6]]),
        ({"name": "z"}, [[]]),
        ({"sort": "-id", "limit": 4}, [[9, 8, 7, 6], [5, 4, 3, 2], [1]]),
        ({"sort": "-id", "status": "sold", "limit": 2}, [[9, 7], [4, 2]]),
        ({"sort": "-id", "id": [2, 5, 3], "limit": 2}, [[5, 3], [2]]),
        ({"sort": "id", "limit": 4}, [[1, 2, 3, 4], [5, 6, 7, 8], [9]]),
        ({"hasStatus": "false", "limit": 2}, [[3, 5], [8]]),
        ({"hasStatus": "false", "sort": "-id", "categoryId": 2}, [[3]]),
        ({"hasStatus": "false", "name": "d"}, [[8]]),
        ({"hasStatus": "true", "limit": 4}, [[1, 2, 4, 6], [7, 9]]),
        ({"hasStatus": "true", "sort": "-id", "id": [1, 3, 9], "limit": 1}, [[9], [1]]),
        ({"hasStatus": "true", "status": "sold", "name": "be"}, [[4, 7]]),
        ({"hasStatus": "true", "categoryId": 9}, [[]]),
    ]
    for query, pages in expected:
        with case(query):
            assert await walk(service, token, **query) == pages
            assert await walk(service, token, **query) == pages  # from memory, where there is one


@pytest.mark.each_database
@pytest.mark.parametrize("character", ["\U0001d1c0", "&"])
async def test_a_search_with_the_longest_name_and_the_most_ids_is_paged(
    service: Service, token: str, character: str
) -> None:
    await service.store.write(create_pets([NewPet(character * 255, 1)] * 3))
    query = {"name": character * 100, "limit": 1}
    assert await walk(service, token, **query) == [[10], [11], [12]]
    query |= {"id[]": list(range(100))}
    assert await walk(service, token, **query) == [[10], [11], [12]]


@pytest.mark.each_database
async def test_a_change_shows_in_the_next_search(service: Service, token: str) -> None:
    assert await walk(service, token, hasStatus="false") == [[3, 5, 8]]
    await service.request("PATCH", "/v1/pets/3", token, json={"status": "sold"})
    assert await walk(service, token, hasStatus="false") == [[5, 8]]
    assert await walk(service, token, name="re") == [[2, 9]]
    await service.request("PATCH", "/v1/pets/2", token, json={"name": "Waldi"})
    assert await walk(service, token, name="re") == [[9]]
    assert await walk(service, token, name="wal") == [[2]]
    await service.request("DELETE", "/v1/pets/2", token)
    assert await walk(service, token, name="wal") == [[]]
