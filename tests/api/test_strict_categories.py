"""A store that accepts only registered categories, and one that accepts any."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from petstore.domain.pets import NewPet
from support.changes import create_pet
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

UNKNOWN = "categoryId: expected a registered category; there is no category 7"


@pytest.fixture
async def strict(address: str) -> AsyncIterator[Service]:
    """The service with ``--strict-categories``; there is one category, Dogs."""
    async with running_service(address, strict_categories=True) as service:
        key = await service.issue()
        await service.request("POST", "/v1/categories", key.token, json={"name": "Dogs"})
        yield service


@pytest.fixture
async def token(strict: Service) -> str:
    """The token of a key without limits."""
    return (await strict.issue()).token


async def test_an_animal_of_an_unknown_category_is_not_added(strict: Service, token: str) -> None:
    body = {"name": "Bella", "categoryId": 7}
    response = await strict.request("POST", "/v1/pets", token, json=body)
    assert assert_error(response, 400, "unknown_category") == UNKNOWN
    assert (await strict.request("GET", "/v1/pets", token)).json() == []


async def test_an_invalid_category_is_an_invalid_body(strict: Service, token: str) -> None:
    body = {"name": "Bella", "categoryId": "7"}
    assert_error(await strict.request("POST", "/v1/pets", token, json=body), 400, "invalid_body")


async def test_an_animal_of_a_registered_category_is_added(strict: Service, token: str) -> None:
    body = {"name": "Bella", "categoryId": 1}
    response = await strict.request("POST", "/v1/pets", token, json=body)
    assert (response.status_code, response.json()) == (201, {"id": 1, **body})


async def test_an_animal_does_not_move_to_an_unknown_category(strict: Service, token: str) -> None:
    bella = {"name": "Bella", "categoryId": 1}
    await strict.request("POST", "/v1/pets", token, json=bella)
    response = await strict.request(
        "PATCH", "/v1/pets/1", token, json={"name": "Max", "categoryId": 7}
    )
    assert assert_error(response, 400, "unknown_category") == UNKNOWN
    assert (await strict.request("GET", "/v1/pets", token)).json() == [{"id": 1, **bella}]
    await strict.request("POST", "/v1/categories", token, json={"name": "Cats"})
    response = await strict.request("PATCH", "/v1/pets/1", token, json={"categoryId": 2})
    assert response.json()["categoryId"] == 2


async def test_a_deleted_category_is_unknown(strict: Service, token: str) -> None:
    await strict.request("DELETE", "/v1/categories/1", token)
    body = {"name": "Bella", "categoryId": 1}
    response = await strict.request("POST", "/v1/pets", token, json=body)
    assert_error(response, 400, "unknown_category")


@pytest.mark.parametrize(
    "body", [{}, {"name": "Max"}, {"status": "sold"}, {"name": "Max", "categoryId": 7}], ids=repr
)
async def test_an_animal_of_old_may_stay_in_its_unknown_category(
    strict: Service, token: str, body: dict[str, Any]
) -> None:
    await strict.store.write(create_pet(NewPet("Bella", 7)))
    response = await strict.request("PATCH", "/v1/pets/1", token, json=body)
    assert response.status_code == 200
    assert response.json() == {"id": 1, "name": "Bella", "categoryId": 7} | body


async def test_an_animal_that_left_its_unknown_category_does_not_return(
    strict: Service, token: str
) -> None:
    await strict.store.write(create_pet(NewPet("Bella", 7)))
    await strict.request("PATCH", "/v1/pets/1", token, json={"categoryId": 1})
    response = await strict.request("PATCH", "/v1/pets/1", token, json={"categoryId": 7})
    assert_error(response, 400, "unknown_category")


async def test_by_default_any_category_will_do(service: Service) -> None:
    key = await service.issue()
    body = {"name": "Bella", "categoryId": 7}
    created = await service.request("POST", "/v1/pets", key.token, json=body)
    assert created.status_code == 201
    response = await service.request("PATCH", "/v1/pets/1", key.token, json={"categoryId": -8})
    assert response.json()["categoryId"] == -8
