"""Paths are matched as sent, and say which methods they take."""

import pytest

from support.error_body import assert_error
from support.service import Service

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "path",
    [
        "/v1",
        "/v1/",
        "/v1//pets",
        "/v1%2Fpets",
        "/v1%2fpets",
        "/v1/pets/",
        "/v1/pets//1",
        "/v1/pets/1/",
        "/v1/pets/1/photos",
        "/v1/pets%2F1",
        "/v1/%70ets",
        "/v1/Pets",
        "/v1/pets;a=1",
        "/v1/pet",
        "/v1/petsx",
        "/v1/usage/",
        "/v1/usage/1",
        "/v1/v1/pets",
        "/v1/store",
        "/v1/store/",
        "/v1/store/orders/1/approve",
        "/v1/keys/1/",
        "/v1/keys//rotate",
        "/v1/keys/1//rotate",
        "/v1/keys/1/rotate/",
        "/v1/keys/1/Rotate",
        "/v1/keys/1/rotate/now",
        "/v1/keys/1/2/rotate",
        "/v1/pets/1/rotate",
        "/v1//rotate",
        "/v1/rotate",
    ],
)
async def test_a_path_that_is_not_in_the_table_is_not_found(service: Service, path: str) -> None:
    key = await service.issue()
    response = await service.request("GET", path, key.token)
    assert_error(response, 404, "not_found")
    assert len(response.headers.get_list("X-RateLimit-Limit")) == 1


async def test_a_dotted_path_is_no_way_out_of_the_base_address(service: Service) -> None:
    key = await service.issue()
    response = await service.request("GET", "/v1/%2e%2e/healthz", key.token)
    assert_error(response, 404, "not_found")


async def test_a_long_path_comes_back_shortened(service: Service) -> None:
    key = await service.issue()
    response = await service.request("GET", f"/v1/{'x' * 5000}", key.token)
    assert len(assert_error(response, 404, "not_found")) < 300


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("PUT", "/v1/pets", "GET, HEAD, POST"),
        ("DELETE", "/v1/pets", "GET, HEAD, POST"),
        ("OPTIONS", "/v1/pets", "GET, HEAD, POST"),
        ("get", "/v1/pets", "GET, HEAD, POST"),
        ("POST", "/v1/pets/1", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/keys/1/rotate", "POST"),
        ("DELETE", "/v1/keys/x/rotate", "POST"),
        ("POST", "/v1/keys/1/history", "GET, HEAD"),
        ("POST", "/v1/usage", "GET, HEAD"),
        ("X" * 1000, "/v1/usage", "GET, HEAD"),
    ],
)
async def test_a_method_the_path_does_not_take_is_refused_with_the_allowed_ones(
    service: Service, method: str, path: str, allow: str
) -> None:
    key = await service.issue()
    request = service.client.build_request("GET", path)
    request.headers["Authorization"] = f"Bearer {key.token}"
    request.method = method  # as it is: a client may not write it in capitals
    response = await service.client.send(request)
    message = assert_error(response, 405, "method_not_allowed")
    assert response.headers.get_list("Allow") == [allow]
    assert len(message) < 100


@pytest.mark.parametrize(
    "key_id", ["x", "1.0", "+1", "9223372036854775808", "%31", "1%2f", "history"]
)
async def test_a_parameter_in_the_middle_that_is_no_integer_names_nothing(
    service: Service, key_id: str
) -> None:
    key = await service.issue(scopes=frozenset({"keys:admin"}))
    response = await service.request("POST", f"/v1/keys/{key_id}/rotate", key.token)
    assert_error(response, 404, "not_found")


@pytest.mark.parametrize("key_id", ["rotate", "1%2Frotate"])
async def test_a_segment_after_a_parameter_is_no_parameter(service: Service, key_id: str) -> None:
    key = await service.issue(scopes=frozenset({"keys:admin"}))
    assert_error(await service.request("GET", f"/v1/keys/{key_id}", key.token), 404, "not_found")
    response = await service.request("POST", f"/v1/keys/{key_id}", key.token)
    assert_error(response, 405, "method_not_allowed")
    assert response.headers["Allow"] == "DELETE, GET, HEAD, PATCH"


async def test_a_parameter_may_stand_in_the_middle_of_a_path(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"keys:admin"}))
    rotated = await service.request("POST", f"/v1/keys/{key.key.id}/rotate", key.token)
    assert rotated.status_code == 200
    assert rotated.json()["id"] == key.key.id
