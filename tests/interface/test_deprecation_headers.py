"""How getPet says that it is going away, and that it is gone."""

import re

import pytest

from petstore.keys.model import Scope
from petstore.pets.model import NewPet
from support.changes import create_pets
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


@pytest.mark.parametrize(
    ("path", "scopes", "status"),
    [
        *(("/v1/pets/7", None, 401), ("/v1/pets/x", None, 401), ("/v1/pets/1", None, 401)),
        ("/v1/pets/1", {"pets:write"}, 403),
        *(("/v1/pets/7", {"pets:read"}, 404), ("/v1/pets/x", {"pets:read"}, 404)),
        ("/v1/pets/1", {"pets:read"}, 200),
    ],
)
async def test_every_response_has_the_deprecation_headers(
    service: Service, path: str, scopes: set[Scope] | None, status: int
) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    key = await service.issue(scopes=frozenset(scopes or ()))
    await sunset_headers(service, path, key.token if scopes else None, status)


async def test_the_operation_returns_410_from_the_sunset_on(service: Service) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    key = await service.issue()
    service.clock.now = SUNSET - 1
    assert (await service.request("GET", "/v1/pets/1", key.token)).status_code == 200
    for service.clock.now in (SUNSET, SUNSET * 2):
        for path in ("/v1/pets/1", "/v1/pets/7", "/v1/pets/x"):
            response = await service.request("GET", path, key.token)
            assert "/v1/pets" in assert_error(response, 410, "gone")
            await sunset_headers(service, path, key.token, 410)
