"""Add, list and get pets."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from petstore.pets.model import NewPet
from support.cases import case
from support.changes import create_pets
from support.error_body import assert_error
from support.service import SERVICE_URL, Service, running_service

pytestmark = pytest.mark.anyio

_NEXT = re.compile(r'<([^>]*)>; rel="next"')


def next_page(response: httpx.Response) -> str | None:
    """Return the address of the next page, if the response names one."""
    found = _NEXT.fullmatch(response.headers.get("Link", ""))
    return found and found[1]


@pytest.fixture
async def token(service: Service) -> str:
    """The token of a key without limits."""
    return (await service.issue()).token


async def fill(service: Service, count: int) -> None:
    """Add pets 1 to ``count``: each third sold, odd ones of category 1."""
    pets = [
        NewPet(f"Pet {n}", n % 2, "sold" if n % 3 == 0 else "available")
        for n in range(1, count + 1)
    ]
    await service.store.write(create_pets(pets))


async def pages(service: Service, token: str, path: str) -> AsyncIterator[list[dict[str, Any]]]:
    """Follow the links from page to page."""
    following: str | None = path
    while following is not None:
        response = await service.request("GET", following, token)
        assert response.status_code == 200
        yield response.json()
        following = next_page(response)


# createPet; which bodies are a pet is tested in test_model.py


async def test_an_invalid_pet_is_refused_naming_the_field(service: Service, token: str) -> None:
    for content, field in (
        ("{}", "name"),
        ('{"name":"Bella"}', "categoryId"),
        ('{"name":"Bel\\u0000la","categoryId":1}', "name"),
        ('{"name":"Bella","categoryId":9223372036854775808.0}', "categoryId"),
        ('{"name":"Bella","categoryId":1,"status":null}', "status"),
    ):
        with case(content):
            response = await service.request("POST", "/v1/pets", token, content=content)
            message = assert_error(response, 400, "invalid_body")
            assert re.match(rf"{field}: .*expected ", message)
    listed = await service.request("GET", "/v1/pets", token)
    assert (listed.json(), "Link" in listed.headers) == ([], False)


@pytest.mark.each_database
async def test_a_pet_is_returned_as_it_was_given(service: Service, token: str) -> None:
    for number, body in enumerate(
        (
            {"name": "B", "categoryId": 1},
            {"name": "Bella", "categoryId": 1, "status": "available"},
            {"name": "Bella", "categoryId": 0, "status": "pending"},
            {"name": "Bella", "categoryId": -(2**63), "status": "sold"},
            {"name": " Bella ", "categoryId": 2**63 - 1},
            {"name": "\U0001f436" * 255, "categoryId": 1},
            {"name": "O'Hara\"; DROP TABLE pets; --\n", "categoryId": 1},
            {"name": "\u202ea\u0001\u007f", "categoryId": 1},
        ),
        1,
    ):
        with case(body):
            await service.request("POST", "/v1/pets", token, json={"name": ""})  # uses no id
            created = await service.request("POST", "/v1/pets", token, json=body)
            assert created.status_code == 201
            assert created.headers["Content-Type"] == "application/json"
            assert created.json() == {"id": number, **body}
            assert created.headers.get_list("Location") == [f"{SERVICE_URL}/v1/pets/{number}"]
            shown = await service.request("GET", f"/v1/pets/{number}", token)
            assert shown.headers["Content-Type"] == "application/json"
            assert shown.json() == created.json()
            listed = await service.request("GET", "/v1/pets", token)
            assert listed.json()[-1] == created.json()


@pytest.mark.each_database
async def test_a_pet_survives_a_restart_of_the_service(address: str) -> None:
    async with running_service(address) as service:
        key = await service.issue()
        body = {"name": "Bella", "categoryId": 1}
        created = await service.request("POST", "/v1/pets", key.token, json=body)
    async with running_service(address) as service:
        assert (await service.request("GET", "/v1/pets", key.token)).json() == [created.json()]


# listPets


async def test_a_page_has_20_pets_by_default(service: Service, token: str) -> None:
    await fill(service, 21)
    response = await service.request("GET", "/v1/pets", token)
    assert [pet["id"] for pet in response.json()] == list(range(1, 21))
    link = next_page(await service.request("GET", "/v1/pets?limit=2", token))
    assert link is not None
    response = await service.request("GET", link.replace("limit=2", "limit=3"), token)
    assert [pet["id"] for pet in response.json()] == [3, 4, 5]


@pytest.mark.each_database
async def test_the_next_page_keeps_the_filters(service: Service, token: str) -> None:
    await fill(service, 40)
    query = "x=%C3%A4+b&status=sold&categoryId=1&limit=2&id=9&id=3&id=15&id=6&id=21&id=27"
    walked = [page async for page in pages(service, token, f"/v1/pets?{query}")]
    assert [[pet["id"] for pet in page] for page in walked] == [[3, 9], [15, 21], [27]]
    first = await service.request("GET", f"/v1/pets?{query}", token)
    link = next_page(first)
    assert link is not None
    assert link.startswith(f"{SERVICE_URL}/v1/pets?status=sold&categoryId=1&limit=2&id=9&id=3")
    second = await service.request("GET", link, token)
    assert (next_page(second) or "").count("cursor=") == 1
