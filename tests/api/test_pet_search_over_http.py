"""Search animals by name, and list the newest first."""

import logging
from typing import Any

import httpx
import pytest

from petstore.domain.pets import NewPet
from petstore.store.pet_search import MAX_SCANNED
from support.changes import create_pets
from support.error_body import assert_error
from support.service import SERVICE_URL, Service, running_service
from support.stores import do, open_store
from support.waiting import eventually

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

PETS = (
    NewPet("Bella", 1, "available"),
    NewPet("Rex", 1, "sold"),
    NewPet("Straße", 2),
    NewPet("BELLO", 2, "sold"),
    NewPet("Ébène", 1),
    NewPet("bella", 2, "available"),
    NewPet("Belinda", 1, "sold"),
)


@pytest.fixture
async def token(service: Service) -> str:
    """The token of a key without limits, of a store with a few animals."""
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


@pytest.mark.parametrize("name", ["", "n" * 101, "\U0001f436" * 101, "a\0"])
async def test_a_bad_name_is_refused(service: Service, token: str, name: str) -> None:
    message = assert_error(await get(service, token, name=name), 400, "invalid_parameter")
    assert message == "name: expected 1 to 100 characters, without U+0000"


@pytest.mark.parametrize("sort", ["", "name", "-name", "ID", "+id", "id,-id", " id"])
async def test_an_unknown_order_is_refused(service: Service, token: str, sort: str) -> None:
    message = assert_error(await get(service, token, sort=sort), 400, "invalid_parameter")
    assert message == "sort: expected one of 'id', '-id'"


@pytest.mark.parametrize("query", ["name=a&name=b", "sort=id&sort=-id"])
async def test_a_parameter_given_twice_is_refused(service: Service, token: str, query: str) -> None:
    response = await service.request("GET", f"/v1/pets?{query}", token)
    assert "got it twice" in assert_error(response, 400, "invalid_parameter")


@pytest.mark.parametrize("sort", ["id", "-id"])
async def test_a_search_with_an_order_is_refused(service: Service, token: str, sort: str) -> None:
    response = await get(service, token, name="b", sort=sort)
    message = assert_error(response, 400, "invalid_parameter")
    assert message == "sort: expected no sort together with name; a search is sorted by name"


ORDERS: tuple[dict[str, str], ...] = ({}, {"sort": "-id"}, {"name": "b"})


@pytest.mark.parametrize("given", ORDERS)
@pytest.mark.parametrize("taken", ORDERS)
async def test_a_cursor_of_another_order_is_refused(
    service: Service, token: str, given: dict[str, str], taken: dict[str, str]
) -> None:
    url = httpx.URL((await get(service, token, limit=1, **given)).links["next"]["url"])
    response = await get(service, token, cursor=url.params["cursor"], **taken)
    if given == taken:
        assert response.status_code == 200
    else:
        assert assert_error(response, 400, "invalid_parameter").startswith("cursor: expected")


@pytest.mark.parametrize("cursor", ["-AAAAAAAAABQ", "AAAAAAAAABQ.YQ"])
async def test_other_lists_do_not_take_these_cursors(
    service: Service, token: str, cursor: str
) -> None:
    response = await service.request("GET", f"/v1/store/orders?cursor={cursor}", token)
    assert assert_error(response, 400, "invalid_parameter").startswith("cursor: expected")


@pytest.mark.parametrize("cursor", ["-AAAAAAAAABQ%0A", "AAAAAAAAABQ.YQ%0A", "AAAAAAAAABQ._w", "-"])
@pytest.mark.parametrize("order", ["sort=-id", "name=b"])
async def test_a_broken_cursor_is_refused(
    service: Service, token: str, order: str, cursor: str
) -> None:
    response = await service.request("GET", f"/v1/pets?{order}&cursor={cursor}", token)
    assert assert_error(response, 400, "invalid_parameter").startswith("cursor: expected")


# Searches


@pytest.mark.parametrize(
    ("query", "pages"),
    [
        ({"name": "BEL"}, [[7, 1, 6, 4]]),
        ({"name": "bel", "limit": 3}, [[7, 1, 6], [4]]),
        ({"name": "bel", "limit": 1}, [[7], [1], [6], [4]]),
        ({"name": "bella", "limit": 1}, [[1], [6]]),
        ({"name": "STRASS"}, [[3]]),
        ({"name": "e\u0301b"}, [[5]]),
        ({"name": "bel", "status": "sold", "limit": 1}, [[7], [4]]),
        ({"name": "bel", "status": "sold", "categoryId": 2}, [[4]]),
        ({"name": "bel", "id": [6, 2, 1, 99], "limit": 1}, [[1], [6]]),
        ({"name": "z"}, [[]]),
        ({"sort": "-id", "limit": 4}, [[7, 6, 5, 4], [3, 2, 1]]),
        ({"sort": "-id", "status": "sold", "limit": 2}, [[7, 4], [2]]),
        ({"sort": "-id", "id": [2, 5, 3], "limit": 2}, [[5, 3], [2]]),
        ({"sort": "id", "limit": 4}, [[1, 2, 3, 4], [5, 6, 7]]),
    ],
    ids=str,
)
async def test_a_list_comes_in_pages_and_in_its_order(
    service: Service, token: str, query: dict[str, Any], pages: list[list[int]]
) -> None:
    assert await walk(service, token, **query) == pages
    assert await walk(service, token, **query) == pages  # from memory, where there is one


async def test_a_link_has_the_search_and_its_filters(service: Service, token: str) -> None:
    page = await get(service, token, name="BEL", status="sold", limit=1)
    assert [pet["id"] for pet in page.json()] == [7]
    # The last one looked at is the second Bella.
    position = "AAAAAAAAAAY.YmVsbGE"
    target = f"{SERVICE_URL}/v1/pets?name=BEL&status=sold&limit=1&cursor={position}"
    assert page.links["next"]["url"] == target


@pytest.mark.parametrize("character", ["\U0001d1c0", "ΐ", "&", "\U0010ffff"])
async def test_a_search_of_the_longest_names_and_most_ids_has_pages_too(
    service: Service, token: str, character: str
) -> None:
    await service.store.write(create_pets([NewPet(character * 255, 1)] * 3))
    query = {"name": character * 100, "limit": 1}
    assert await walk(service, token, **query) == [[8], [9], [10]]
    query |= {"id[]": list(range(100))}
    assert await walk(service, token, **query) == [[8], [9], [10]]


async def test_a_page_may_be_short_and_have_a_next_one(service: Service, token: str) -> None:
    await service.store.write(create_pets([NewPet("Zora", 1, "sold")] * (MAX_SCANNED + 1)))
    await service.store.write(create_pets([NewPet("Zora", 1, "available")]))
    assert await walk(service, token, name="zo", status="available") == [[], [MAX_SCANNED + 9]]


async def test_a_change_shows_in_the_next_search(service: Service, token: str) -> None:
    assert await walk(service, token, name="re") == [[2]]
    await service.request("PATCH", "/v1/pets/2", token, json={"name": "Waldi"})
    assert await walk(service, token, name="re") == [[]]
    assert await walk(service, token, name="wal") == [[2]]
    await service.request("DELETE", "/v1/pets/2", token)
    assert await walk(service, token, name="wal") == [[]]


async def test_a_search_for_one_animal_has_its_tag(service: Service, token: str) -> None:
    one = await service.request("GET", "/v1/pets/2", token)
    found = await get(service, token, name="rex")
    assert found.headers["ETag"] == one.headers["ETag"]


async def test_a_service_fills_in_what_an_older_one_left_out(
    address: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "petstore.store.pet_search")
    async with open_store(address) as store:
        await store.write(create_pets([NewPet("Bella", 1)] * 150))
        await store.write(do("UPDATE pets SET name_key = NULL"))
    async with running_service(address) as service:
        token = (await service.issue()).token

        async def is_complete() -> bool:
            return len((await get(service, token, name="bella", limit=100)).links) == 1

        await eventually(is_complete, 30)
        await eventually(lambda: len(caplog.messages) == 2, 30)
        assert await walk(service, token, name="bella", limit=75) == [
            list(range(1, 76)),
            list(range(76, 151)),
        ]
