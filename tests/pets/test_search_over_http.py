"""Search pets by name, and list the newest first."""

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


async def test_an_invalid_search_or_order_is_refused(service: Service, token: str) -> None:
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


async def test_a_cursor_of_another_order_is_refused(service: Service, token: str) -> None:
    orders: tuple[dict[str, str], ...] = ({}, {"sort": "-id"})
    for given, taken in (orders, orders[::-1]):
        with case(given, taken):
            url = httpx.URL((await get(service, token, limit=1, **given)).links["next"]["url"])
            response = await get(service, token, cursor=url.params["cursor"], **taken)
            message = assert_error(response, 400, "invalid_parameter")
            assert message.startswith("cursor: expected")


@pytest.mark.each_database
async def test_search_results_come_by_id_and_are_paged(service: Service, token: str) -> None:
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
            assert await walk(service, token, **query) == pages
