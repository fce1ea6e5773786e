"""The bearer token of a request."""

from pathlib import Path

import pytest

from petstore.domain.api_keys import new_token
from support.error_body import assert_error
from support.keys import change, revoke, rotate
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

NO_TOKEN = 'Bearer realm="petstore"'
BAD_TOKEN = 'Bearer realm="petstore", error="invalid_token"'


@pytest.mark.parametrize("path", ["/v1/pets", "/v1/pets/1", "/v1/usage", "/v1/unknown"])
async def test_a_request_without_a_key_is_refused(service: Service, path: str) -> None:
    response = await service.request("GET", path)
    message = assert_error(response, 401, "missing_api_key")
    assert message.startswith("Authorization: ")
    assert response.headers.get_list("WWW-Authenticate") == [NO_TOKEN]


@pytest.mark.parametrize(
    "value", ["", "Bearer", "Bearer ", "Basic YTpi", "{token}", "Bearer\t{token}"]
)
async def test_what_is_no_bearer_token_is_no_key(service: Service, value: str) -> None:
    key = await service.issue()
    headers = {"Authorization": value.format(token=key.token)}
    response = await service.request("GET", "/v1/pets", headers=headers)
    assert_error(response, 401, "missing_api_key")
    assert response.headers.get_list("WWW-Authenticate") == [NO_TOKEN]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-1],
        lambda token: token + "0",
        lambda token: token.swapcase(),
        lambda token: token[:-1] + ("0" if token[-1] != "0" else "1"),
        lambda token: f'"{token}"',
        lambda token: f"{token} {token}",
        lambda token: f"{token},",
        lambda token: f"{token}\xff",
        lambda _: new_token("production"),
        lambda _: "x" * 10_000,
    ],
    ids=["short", "long", "case", "typo", "quoted", "two", "comma", "binary", "unknown", "huge"],
)
async def test_a_token_of_no_key_is_refused(service: Service, spoil: object) -> None:
    key = await service.issue()
    assert callable(spoil)
    headers = {b"Authorization": f"Bearer {spoil(key.token)}".encode("latin-1")}
    response = await service.request("GET", "/v1/pets", headers=headers)
    assert_error(response, 401, "invalid_api_key")
    assert response.headers.get_list("WWW-Authenticate") == [BAD_TOKEN]
    assert key.token not in response.text


async def test_two_authorization_fields_are_refused_even_if_alike(service: Service) -> None:
    key = await service.issue()
    value = f"Bearer {key.token}"
    headers = [("Authorization", value), ("Authorization", value)]
    response = await service.request("GET", "/v1/pets", headers=headers)
    assert_error(response, 401, "invalid_api_key")
    assert response.headers["WWW-Authenticate"] == BAD_TOKEN


@pytest.mark.parametrize("name", ["access_token", "api_key", "key", "token", "authorization"])
async def test_a_key_in_the_query_does_not_count(service: Service, name: str) -> None:
    key = await service.issue()
    response = await service.request("GET", "/v1/pets", params={name: key.token})
    assert_error(response, 401, "missing_api_key")


@pytest.mark.parametrize("name", ["X-API-Key", "Cookie", "Proxy-Authorization"])
async def test_a_key_in_another_field_does_not_count(service: Service, name: str) -> None:
    key = await service.issue()
    headers = {name: f"Bearer {key.token}"}
    assert_error(await service.request("GET", "/v1/pets", headers=headers), 401, "missing_api_key")


async def test_a_key_of_the_other_environment_is_refused(database: Path) -> None:
    async with running_service(database, environment="staging") as staging:
        key = await staging.issue()
        assert key.token.startswith("ps_test_")
        assert (await staging.request("GET", "/v1/pets", key.token)).status_code == 200
    async with running_service(database) as production:
        response = await production.request("GET", "/v1/pets", key.token)
        assert_error(response, 401, "invalid_api_key")


async def test_an_expired_key_is_refused_from_the_very_millisecond(service: Service) -> None:
    key = await service.issue(expires_in=60)
    service.clock.now += 59_999
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200
    service.clock.now += 1
    assert_error(await service.request("GET", "/v1/pets", key.token), 401, "invalid_api_key")


async def test_a_revoked_key_is_refused_within_a_second(service: Service) -> None:
    key = await service.issue()
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200
    await revoke(service.store, service.clock, key.key.id)
    await service.status_becomes(key.token, 401)


async def test_a_rotated_token_is_refused_after_its_grace(service: Service) -> None:
    old = await service.issue()
    assert (await service.request("GET", "/v1/pets", old.token)).status_code == 200
    new = await rotate(service.store, service.clock, old.key.id, 60_000)
    assert (await service.request("GET", "/v1/pets", new.token)).status_code == 200
    assert (await service.request("GET", "/v1/pets", old.token)).status_code == 200
    service.clock.advance(60)
    assert (await service.request("GET", "/v1/pets", new.token)).status_code == 200
    await service.status_becomes(old.token, 401)


@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "/v1/pets", "pets:read"),
        ("GET", "/v1/pets/1", "pets:read"),
        ("POST", "/v1/pets", "pets:write"),
    ],
)
async def test_a_key_without_the_scope_is_told_which_it_lacks(
    service: Service, method: str, path: str, scope: str
) -> None:
    key = await service.issue(scopes=frozenset({"orders:read", "keys:admin"}))
    response = await service.request(method, path, key.token)
    assert scope in assert_error(response, 403, "missing_scope")
    assert response.headers.get_list("WWW-Authenticate") == [
        f'Bearer realm="petstore", error="insufficient_scope", scope="{scope}"'
    ]


async def test_usage_needs_no_scope(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"keys:admin"}))
    assert (await service.request("GET", "/v1/usage", key.token)).status_code == 200


async def test_a_scope_granted_later_counts(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"pets:write"}))
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 403
    scopes = frozenset({"pets:read"})
    await change(service.store, service.clock, key.key.id, scopes=scopes)
    await service.status_becomes(key.token, 200, "/v1/pets")


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER", "Bearer  "])
async def test_the_scheme_is_read_without_regard_to_case(service: Service, scheme: str) -> None:
    key = await service.issue()
    headers = {"Authorization": f"{scheme} {key.token}"}
    assert (await service.request("GET", "/v1/pets", headers=headers)).status_code == 200
