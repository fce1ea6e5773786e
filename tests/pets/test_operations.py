"""Add, list, get, change and delete pets; which bodies are one, test_model.py tests."""

import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from petstore.pets.model import NewPet
from support.cases import case
from support.changes import create_pets
from support.error_body import assert_error
from support.sending import TEXT, Send, sender
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


BELLA = {"id": 1, "name": "Bella", "categoryId": 7, "status": "available"}
SUNSET = 1_922_659_200_000  # 2030-12-05T00:00:00Z


@pytest.fixture
async def send(service: Service) -> Send:
    """Sends requests with a key without limits."""
    return await sender(service)


async def add(send: Send) -> None:
    """Add Bella."""
    assert (await send("POST", "/pets", json=BELLA)).status_code == 201


async def read(send: Send) -> dict[str, Any]:
    """Return the pet 1."""
    pet: dict[str, Any] = (await send("GET", "/pets/1")).json()
    return pet


async def patch(send: Send, **fields: Any) -> httpx.Response:
    """Change the pet 1."""
    return await send("PATCH", "/pets/1", json=fields)


# Changes that are refused


async def test_a_change_is_json_or_a_merge_patch(send: Send) -> None:
    await add(send)
    for media_type in ("text/plain", "application/json-patch+json", ""):
        with case(media_type):
            headers = {"Content-Type": media_type}
            response = await send("PATCH", "/pets/1", headers=headers, content=b'{"name":"Max"}')
            message = assert_error(response, 415, "unsupported_media_type")
            assert "application/json or application/merge-patch+json" in message
            accepted = response.headers["Accept-Patch"]
            assert accepted == "application/merge-patch+json, application/json"
            assert "Accept-Encoding" not in response.headers
    assert await read(send) == BELLA
    taken = "application/merge-patch+json"
    for media_type in (taken, "Application/Merge-Patch+JSON; charset=utf-8"):
        with case(media_type):
            headers = {"Content-Type": media_type}
            response = await send("PATCH", "/pets/1", headers=headers, content=b'{"status":null}')
            assert "status" not in response.json()


async def test_an_unknown_pet_is_not_found(send: Send) -> None:
    await add(send)
    for method in ("PATCH", "DELETE"):
        for pet_id in ("2", "+1", "1.0", "9223372036854775808", "%31"):
            with case(method, pet_id):
                response = await send(method, f"/pets/{pet_id}", json={"name": "Max"})
                assert_error(response, 404, "not_found")
    assert await read(send) == BELLA


async def test_a_refused_change_changes_nothing(send: Send) -> None:
    await add(send)
    await patch(send, status="sold")
    message = assert_error(
        await patch(send, status="pending", name="Max"), 409, "illegal_transition"
    )
    assert message == "status: sold can become available, not pending"
    assert await read(send) == BELLA | {"status": "sold"}


# Changes that are made


@pytest.mark.each_database
async def test_only_the_named_fields_change(send: Send) -> None:
    for _ in range(2):
        await add(send)
    expected = BELLA
    for body, changed in (
        ({}, {}),
        ({"id": 9, "owner": None}, {}),
        (BELLA, {}),
        ({"name": "x" * 255}, {"name": "x" * 255}),
        ({"categoryId": -(2**63)}, {"categoryId": -(2**63)}),
        ({"categoryId": 2**63 - 1}, {"categoryId": 2**63 - 1}),
        ({"categoryId": 0.0}, {"categoryId": 0}),
        ({"name": " Max\n", "status": "sold"}, {"name": " Max\n", "status": "sold"}),
    ):
        with case(body):
            expected = expected | changed
            response = await send("PATCH", "/pets/1", json=body)
            assert response.status_code == 200
            assert response.headers["Content-Type"] == "application/json"
            assert response.json() == expected == await read(send)
            assert "Location" not in response.headers
    assert (await send("GET", "/pets/2")).json() == BELLA | {"id": 2}


# Deletions


@pytest.mark.each_database
async def test_a_deleted_pet_is_not_found_and_its_id_not_reused(send: Send) -> None:
    for pet_id in (1, 2, 3):
        await add(send)
        response = await send("DELETE", f"/pets/{pet_id}", headers=TEXT, content=b"no JSON")
        assert (response.status_code, response.content) == (204, b"")
        assert not {"Content-Length", "Content-Type", "ETag"} & set(response.headers)
    for method in ("GET", "PATCH", "DELETE"):
        response = await send(method, "/pets/1", json={})
        assert assert_error(response, 404, "not_found") == "there is no pet 1"
    assert (await send("GET", "/pets")).json() == []
    created = await send("POST", "/pets", json=BELLA)
    assert created.headers["Location"] == f"{SERVICE_URL}/v1/pets/4"


async def test_pets_can_be_changed_and_deleted_after_the_sunset_of_get_pet(
    service: Service, send: Send
) -> None:
    await add(send)
    for now in (service.clock.now, SUNSET):
        service.clock.now = now
        response = await patch(send, name="Max")
        assert response.status_code == 200
        assert not {"deprecation", "sunset", "link"} & set(response.headers)
    assert_error(await send("GET", "/pets/1"), 410, "gone")
    response = await send("DELETE", "/pets/1")
    assert response.status_code == 204
    assert not {"deprecation", "sunset", "link"} & set(response.headers)
