"""How getPet says that it is going away, and that it is gone."""

import re

import pytest

from support.error_body import assert_error
from support.service import SERVICE_URL, Service

pytestmark = pytest.mark.anyio

SUNSET = 1_922_659_200_000  # 2030-12-05T00:00:00Z


async def sunset_headers(service: Service, path: str, token: str | None, status: int) -> None:
    for method in ("GET", "HEAD"):
        response = await service.request(method, path, token)
        assert response.status_code == status
        assert response.headers.get_list("Sunset") == ["Thu, 05 Dec 2030 00:00:00 GMT"]
        (deprecation,) = response.headers.get_list("Deprecation")
        assert re.fullmatch(r"@[0-9]+", deprecation)
        assert int(deprecation[1:]) <= service.clock() // 1000
        assert response.links["deprecation"]["url"] == f"{SERVICE_URL}/docs/operations/getPet"
        assert response.links["successor-version"]["url"] == f"{SERVICE_URL}/v1/pets"


@pytest.mark.parametrize("path", ["/v1/pets/7", "/v1/pets/x", "/v1/pets/1"])
async def test_a_response_without_a_key_says_it(service: Service, path: str) -> None:
    await sunset_headers(service, path, None, 401)


@pytest.mark.parametrize("path", ["/v1/pets/7", "/v1/pets/x"])
async def test_a_response_not_found_says_it(service: Service, path: str) -> None:
    key = await service.issue()
    await sunset_headers(service, path, key.token, 404)


async def test_a_response_over_the_limit_says_it(service: Service) -> None:
    key = await service.issue(per_minute=1)
    await service.request("GET", "/v1/pets", key.token)
    await sunset_headers(service, "/v1/pets/1", key.token, 429)


async def test_a_response_without_the_scope_says_it(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"pets:write"}))
    await sunset_headers(service, "/v1/pets/1", key.token, 403)


async def test_a_response_with_the_animal_says_it(service: Service) -> None:
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json={"name": "Bella", "categoryId": 1})
    await sunset_headers(service, "/v1/pets/1", key.token, 200)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/pets"), ("POST", "/v1/pets"), ("GET", "/v1/usage"), ("POST", "/v1/pets/1")],
)
async def test_no_other_operation_says_it(service: Service, method: str, path: str) -> None:
    key = await service.issue()
    response = await service.request(method, path, key.token)
    assert not {"Deprecation", "Sunset"} & set(response.headers)


@pytest.mark.parametrize("path", ["/v1/pets/1", "/v1/pets/7", "/v1/pets/x"])
async def test_it_is_gone_from_the_sunset_on(service: Service, path: str) -> None:
    key = await service.issue()
    service.clock.now = SUNSET
    response = await service.request("GET", path, key.token)
    assert "/v1/pets" in assert_error(response, 410, "gone")
    await sunset_headers(service, path, key.token, 410)
    service.clock.now = SUNSET * 2
    assert_error(await service.request("GET", path, key.token), 410, "gone")


async def test_it_works_one_millisecond_before_the_sunset(service: Service) -> None:
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json={"name": "Bella", "categoryId": 1})
    service.clock.now = SUNSET - 1
    assert (await service.request("GET", "/v1/pets/1", key.token)).status_code == 200


async def test_after_the_sunset_a_bad_key_is_still_refused_first(service: Service) -> None:
    service.clock.now = SUNSET
    assert_error(await service.request("GET", "/v1/pets/1"), 401, "missing_api_key")


async def test_after_the_sunset_the_list_still_finds_one_animal(service: Service) -> None:
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json={"name": "Bella", "categoryId": 1})
    service.clock.now = SUNSET
    response = await service.request("GET", "/v1/pets?id=1", key.token)
    assert [pet["id"] for pet in response.json()] == [1]
