"""Many pets in one request: all of them or none."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from petstore.categories.model import CategoryCreate
from support.changes import create_category
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

PATH = "/v1/pets/batch"


def pets(count: int, **members: Any) -> list[dict[str, Any]]:
    return [{"name": f"Pet {n}", "categoryId": n % 2, **members} for n in range(1, count + 1)]


@pytest.fixture
async def token(service: Service) -> str:
    """The token of a key without limits."""
    return (await service.issue()).token


async def send(service: Service, token: str, body: Any, **options: Any) -> httpx.Response:
    return await service.request("POST", PATH, token, json=body, **options)


async def in_store(service: Service, token: str) -> list[dict[str, Any]]:
    response = await service.request("GET", "/v1/pets?limit=100", token)
    found: list[dict[str, Any]] = response.json()
    return found


@pytest.mark.each_database
async def test_one_invalid_pet_refuses_the_batch_and_each_is_named(service: Service) -> None:
    key, once = await service.issue(per_day=300), {"Idempotency-Key": "once"}
    body = [*pets(2), {"name": "", "categoryId": 1}, 7, {"name": 5, "categoryId": 1}]
    response = await send(service, key.token, body, headers=once)
    name = "expected 1 to 255 characters, not only spaces"
    message = assert_error(response, 400, "invalid_body")
    assert message == f"[2].name, [4].name: {name}; [3]: expected a JSON object"
    assert response.headers["X-RateLimit-Remaining"] == "299"  # it costs one request
    for items in ([], pets(101), pets(1)[0]):
        message = assert_error(await send(service, key.token, items), 400, "invalid_body")
        assert message == "the body: expected a JSON array of 1 to 100 items"
    assert await in_store(service, key.token) == []
    # Corrected, with the same key, and sent again.
    for _ in range(2):
        corrected = await send(service, key.token, pets(2), headers=once)
        assert corrected.status_code == 201
    assert len(await in_store(service, key.token)) == 2


@pytest.mark.each_database
async def test_with_strict_categories_each_unregistered_one_is_named(address: str) -> None:
    async with running_service(address, strict_categories=True) as service:
        token = (await service.issue()).token
        await service.store.write(create_category(CategoryCreate("Dogs")))
        body = pets(4, categoryId=1)
        body[1]["categoryId"] = body[3]["categoryId"] = 99
        message = assert_error(await send(service, token, body), 400, "unknown_category")
        assert message == (
            "[1].categoryId, [3].categoryId: expected a registered category; there is no category"
            " 99"
        )
        assert await in_store(service, token) == []
        assert (await send(service, token, pets(4, categoryId=1))).status_code == 201


@pytest.mark.parametrize("letter", ["\U0001f436", "\x01", '"'])
@pytest.mark.each_database
async def test_a_hundred_pets_of_longest_names_are_returned_in_order(
    service: Service, token: str, letter: str
) -> None:
    wanted = [
        pet | {"name": f"{n:03}" + 252 * letter}
        for n, pet in enumerate(pets(100, categoryId=-(2**63), status="available"), 1)
    ]
    body = json.dumps([{**pet, "id": 7, "ignored": {}} for pet in wanted])
    options: dict[str, Any] = {"content": body, "headers": {"Idempotency-Key": "once"}}
    first = await service.request("POST", PATH, token, **options)
    assert first.status_code == 201
    assert first.json() == [{"id": n, **pet} for n, pet in enumerate(wanted, 1)]
    assert not {"Location", "ETag", "Link"} & set(first.headers)
    assert (await service.request("POST", PATH, token, **options)).content == first.content
    assert await in_store(service, token) == first.json()


async def test_a_batch_costs_a_request_of_the_day_for_each_pet_whenever_it_is_sent(
    service: Service,
) -> None:
    key = await service.issue("free")
    for left in (900, 800):
        response = await send(service, key.token, pets(100), headers={"Idempotency-Key": "once"})
        minute = left // 100 + 50
        assert response.headers["RateLimit"] == f'"minute";r={minute};t=60, "day";r={left};t=43200'
        assert response.headers["X-RateLimit-Remaining"] == str(minute)
        usage = (await service.request("GET", "/v1/usage", key.token)).json()
        assert usage["day"]["remaining"] == left


async def test_a_batch_beyond_the_day_is_refused_until_midnight(service: Service) -> None:
    key, midnight = await service.issue(per_minute=5, per_day=20), service.clock() // 1000 + 43_200
    await send(service, key.token, pets(11))
    response = await send(service, key.token, pets(10))
    assert assert_error(response, 429, "rate_limit_exceeded") == (
        "this request costs as much as 10, and 9 of 20 requests a day are left: send fewer items,"
        " or wait 43200 seconds"
    )
    # The minute has fewer left, but does not matter.
    assert response.headers["X-RateLimit-Limit"] == "20"
    assert response.headers["X-RateLimit-Remaining"] == "9"
    assert response.headers["RateLimit"] == '"minute";r=3;t=60, "day";r=9;t=43200'
    assert response.headers["X-RateLimit-Reset"] == str(midnight)
    assert response.headers["Retry-After"] == "43200"
    response = await send(service, key.token, pets(9))  # exactly as many as are left
    assert (response.status_code, response.headers["X-RateLimit-Remaining"]) == (201, "0")
    assert_error(await send(service, key.token, pets(1)), 429, "rate_limit_exceeded")
    service.clock.advance(43_200)
    assert (await send(service, key.token, pets(10))).json()[0]["id"] == 21


@pytest.mark.each_database
async def test_batches_of_a_key_run_one_by_one_and_a_ninth_is_refused(service: Service) -> None:
    key = await service.issue(per_day=100)
    await service.request("GET", "/v1/usage", key.token)  # in memory: so the batches begin in order
    both = [key.token] * 9 + [(await service.issue()).token]
    *own, ninth, other = await asyncio.gather(*(send(service, each, pets(3)) for each in both))
    firsts = [response.json()[0]["id"] for response in own]
    assert firsts == sorted(firsts)
    message = assert_error(ninth, 429, "rate_limit_exceeded")
    assert message == "this key has 8 batches in progress: wait until one has its response"
    assert ninth.headers["Retry-After"] == "1"
    assert other.status_code == 201
    usage = await service.request("GET", "/v1/usage", key.token)
    assert usage.json()["day"]["remaining"] == 100 - 8 * 3 - 1
