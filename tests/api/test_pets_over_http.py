"""Add, list and get animals."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from petstore.domain.pets import NewPet
from support.changes import create_pets
from support.error_body import assert_error
from support.service import SERVICE_URL, Service, running_service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

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
    """Add animals 1 to ``count``: each third sold, odd ones of category 1."""
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


# createPet


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "name"),
        ({"categoryId": 1}, "name"),
        ({"name": "Bella"}, "categoryId"),
        ({"name": None, "categoryId": 1}, "name"),
        ({"name": "", "categoryId": 1}, "name"),
        ({"name": " \t\u00a0\u3000\n", "categoryId": 1}, "name"),
        ({"name": "x" * 256, "categoryId": 1}, "name"),
        ({"name": "Bel\u0000la", "categoryId": 1}, "name"),
        ({"name": "x" * 60_000 + "\u0000", "categoryId": 1}, "name"),
        ({"name": 5, "categoryId": 1}, "name"),
        ({"name": ["Bella"], "categoryId": 1}, "name"),
        ({"name": "Bella", "categoryId": None}, "categoryId"),
        ({"name": "Bella", "categoryId": "1"}, "categoryId"),
        ({"name": "Bella", "categoryId": True}, "categoryId"),
        ({"name": "Bella", "categoryId": 1.5}, "categoryId"),
        ({"name": "Bella", "categoryId": 2**63}, "categoryId"),
        ({"name": "Bella", "categoryId": -(2**63) - 1}, "categoryId"),
        ({"name": "Bella", "categoryId": 2**64}, "categoryId"),
        ({"name": "Bella", "categoryId": {}}, "categoryId"),
        ({"name": "Bella", "categoryId": 1, "status": None}, "status"),
        ({"name": "Bella", "categoryId": 1, "status": ""}, "status"),
        ({"name": "Bella", "categoryId": 1, "status": "lost"}, "status"),
        ({"name": "Bella", "categoryId": 1, "status": "Sold"}, "status"),
        ({"name": "Bella", "categoryId": 1, "status": 1}, "status"),
    ],
    ids=lambda value: repr(value)[:60],
)
async def test_an_invalid_animal_is_refused_naming_the_field(
    service: Service, token: str, body: dict[str, Any], field: str
) -> None:
    response = await service.request("POST", "/v1/pets", token, json=body)
    assert re.match(rf"{field}: .*expected ", assert_error(response, 400, "invalid_body"))
    assert (await service.request("GET", "/v1/pets", token)).json() == []


@pytest.mark.parametrize("text", ["1e-1", "0.5", "-1.25E1", "1e400", "9223372036854775808.0"])
async def test_a_number_that_is_not_whole_or_too_large_is_no_integer(
    service: Service, token: str, text: str
) -> None:
    content = f'{{"name":"Bella","categoryId":{text}}}'
    response = await service.request("POST", "/v1/pets", token, content=content)
    assert "categoryId" in assert_error(response, 400, "invalid_body")


@pytest.mark.parametrize(
    ("text", "integer"),
    [
        ("5.0", 5),
        ("5e0", 5),
        ("0.05E2", 5),
        ("-0.0", 0),
        ("9007199254740993.0", 9007199254740993),
        ("-9223372036854775808.0", -(2**63)),
    ],
)
async def test_a_whole_number_is_the_integer_it_is_to_json_schema(
    service: Service, token: str, text: str, integer: int
) -> None:
    content = f'{{"name":"Bella","categoryId":{text}}}'
    response = await service.request("POST", "/v1/pets", token, content=content)
    assert response.json()["categoryId"] == integer
    assert "." not in response.text


@pytest.mark.parametrize("name", [r"\ud800", r"\udc00", r"a\ud800b", r"\udc00\ud800"])
async def test_a_lone_surrogate_is_refused(service: Service, token: str, name: str) -> None:
    content = f'{{"name":"{name}","categoryId":1}}'
    response = await service.request("POST", "/v1/pets", token, content=content)
    assert_error(response, 400, "invalid_body")


@pytest.mark.parametrize(
    "body",
    [
        {"name": "B", "categoryId": 1},
        {"name": "Bella", "categoryId": 1, "status": "available"},
        {"name": "Bella", "categoryId": 0, "status": "pending"},
        {"name": "Bella", "categoryId": -(2**63), "status": "sold"},
        {"name": " Bella ", "categoryId": 2**63 - 1},
        {"name": "\U0001f436" * 255, "categoryId": 1},
        {"name": "O'Hara\"; DROP TABLE pets; --\n", "categoryId": 1},
        {"name": "\u202e\u0001\u007f", "categoryId": 1},
    ],
    ids=lambda body: repr(body)[:40],
)
async def test_an_animal_is_returned_as_it_was_given(
    service: Service, token: str, body: dict[str, Any]
) -> None:
    created = await service.request("POST", "/v1/pets", token, json=body)
    assert created.status_code == 201
    assert created.json() == {"id": 1, **body}
    assert created.headers.get_list("Location") == [f"{SERVICE_URL}/v1/pets/1"]
    assert (await service.request("GET", "/v1/pets/1", token)).json() == created.json()
    assert (await service.request("GET", "/v1/pets", token)).json() == [created.json()]


async def test_ids_ascend_from_1_and_are_not_spent_on_refusals(
    service: Service, token: str
) -> None:
    for expected in (1, 2, 3):
        await service.request("POST", "/v1/pets", token, json={"name": ""})
        body = {"name": "Bella", "categoryId": 1}
        response = await service.request("POST", "/v1/pets", token, json=body)
        assert response.json()["id"] == expected


async def test_an_animal_outlives_the_service(address: str) -> None:
    async with running_service(address) as service:
        key = await service.issue()
        body = {"name": "Bella", "categoryId": 1}
        created = await service.request("POST", "/v1/pets", key.token, json=body)
    async with running_service(address) as service:
        assert (await service.request("GET", "/v1/pets", key.token)).json() == [created.json()]


# listPets


async def test_a_list_of_nothing_is_an_empty_array(service: Service, token: str) -> None:
    response = await service.request("GET", "/v1/pets", token)
    assert response.json() == []
    assert "Link" not in response.headers


async def test_a_page_has_20_animals_by_default(service: Service, token: str) -> None:
    await fill(service, 21)
    response = await service.request("GET", "/v1/pets", token)
    assert [pet["id"] for pet in response.json()] == list(range(1, 21))
    assert next_page(response) is not None


@pytest.mark.parametrize("limit", [1, 20, 99, 100])
async def test_a_page_of_exactly_all_animals_has_no_next(
    service: Service, token: str, limit: int
) -> None:
    await fill(service, limit)
    response = await service.request("GET", f"/v1/pets?limit={limit}", token)
    assert len(response.json()) == limit
    assert "Link" not in response.headers


@pytest.mark.parametrize("limit", [1, 3, 7, 100])
async def test_pages_walk_every_animal_once(service: Service, token: str, limit: int) -> None:
    await fill(service, 23)
    walked = [page async for page in pages(service, token, f"/v1/pets?limit={limit}")]
    assert [pet["id"] for page in walked for pet in page] == list(range(1, 24))
    assert {len(page) for page in walked[:-1]} <= {limit}


async def test_pages_walk_every_animal_once_while_some_are_added(
    service: Service, token: str
) -> None:
    await fill(service, 10)
    seen = []
    async for page in pages(service, token, "/v1/pets?limit=4"):
        seen += [pet["id"] for pet in page]
        if len(seen) < 20:
            await fill(service, 3)
    assert seen == list(range(1, seen[-1] + 1))
    assert len(seen) > 20


async def test_a_cursor_keeps_the_filters(service: Service, token: str) -> None:
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


async def test_a_cursor_may_be_used_with_another_limit(service: Service, token: str) -> None:
    await fill(service, 5)
    link = next_page(await service.request("GET", "/v1/pets?limit=2", token))
    assert link is not None
    response = await service.request("GET", link.replace("limit=2", "limit=3"), token)
    assert [pet["id"] for pet in response.json()] == [3, 4, 5]


@pytest.mark.parametrize("cursor", ["f_________8", "gAAAAAAAAAA"])
async def test_a_cursor_at_either_end_of_int64_is_taken(
    service: Service, token: str, cursor: str
) -> None:
    response = await service.request("GET", f"/v1/pets?cursor={cursor}", token)
    assert response.status_code == 200


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("status=sold", [3, 6]),
        ("status=pending", []),
        ("categoryId=0", [2, 4, 6]),
        ("categoryId=1&status=sold", [3]),
        ("id=5&id=2&id=5&id=99", [2, 5]),
        ("id=5&id=3&status=sold", [3]),
        ("id=-1", []),
    ],
)
async def test_filters_narrow_the_list(
    service: Service, token: str, query: str, ids: list[int]
) -> None:
    await fill(service, 6)
    response = await service.request("GET", f"/v1/pets?{query}", token)
    assert [pet["id"] for pet in response.json()] == ids


async def test_the_first_100_ids_may_lie_anywhere(service: Service, token: str) -> None:
    await fill(service, 120)
    query = "&".join(f"id={n}" for n in range(120, 20, -1))
    response = await service.request("GET", f"/v1/pets?limit=100&{query}", token)
    assert [pet["id"] for pet in response.json()] == list(range(21, 121))


async def test_a_list_shows_an_animal_as_soon_as_it_is_added(service: Service, token: str) -> None:
    for count in range(1, 4):
        await fill(service, 1)
        response = await service.request("GET", "/v1/pets", token)
        assert len(response.json()) == count


# getPet


async def test_an_animal_that_is_not_there_is_not_found(service: Service, token: str) -> None:
    response = await service.request("GET", "/v1/pets/7", token)
    assert assert_error(response, 404, "not_found") == "there is no pet 7"


async def test_an_animal_without_a_status_is_returned_without_it(
    service: Service, token: str
) -> None:
    await service.request("POST", "/v1/pets", token, json={"name": "Bella", "categoryId": 1})
    response = await service.request("GET", "/v1/pets/1", token)
    assert response.json() == {"id": 1, "name": "Bella", "categoryId": 1}
    assert response.headers["Content-Type"] == "application/json"
