"""The bearer token of a request; the scope of each operation is tested in test_openapi.py."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path

import pytest

from petstore.databases.contract import Row, Statement
from petstore.databases.sqlite import SqliteStore
from petstore.keys.model import new_token
from support.cases import case
from support.error_body import assert_error
from support.keys import change, revoke
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

NO_TOKEN = 'Bearer realm="petstore"'
BAD_TOKEN = 'Bearer realm="petstore", error="invalid_token"'
MISSING = [
    *("", "Bearer", "Bearer ", "Basic YTpi", "{token}", "Bearer\t{token}"),
    *("X-API-Key: Bearer {token}", "Cookie: Bearer {token}", "Proxy-Authorization: Bearer {token}"),
    *("?access_token={token}", "?api_key={token}", "?authorization={token}"),
]
INVALID = [
    *("{short}", "{token}0", "{turned}", "{short}?", '"{token}"', "{token} {token}", "{token},"),
    *("{token}\xff", "{other}", "x" * 10_000),
]


async def test_a_request_without_a_bearer_token_is_refused(service: Service) -> None:
    token = (await service.issue()).token
    for path, sent in product(("/v1/pets", "/v1/pets/1", "/v1/usage", "/v1/unknown"), MISSING):
        with case(path, sent):
            name, _, value = sent.format(token=token).rpartition(": ")
            query = value if value.startswith("?") else ""
            headers = {name or "Authorization": value} if sent and not query else {}
            response = await service.request("GET", f"{path}{query}", headers=headers)
            assert assert_error(response, 401, "missing_api_key").startswith("Authorization: ")
            assert response.headers.get_list("WWW-Authenticate") == [NO_TOKEN]


async def test_a_token_without_a_key_is_refused(service: Service) -> None:
    token = (await service.issue()).token
    other = new_token("production")
    words = {"token": token, "short": token[:-1], "turned": token.swapcase(), "other": other}
    headers = [
        {b"Authorization": b"Bearer " + sent.format(**words).encode("latin-1")} for sent in INVALID
    ]
    twice = [("Authorization", f"Bearer {token}"), ("Authorization", f"Bearer {token}")]
    for each in (*headers, twice):
        with case(each):
            response = await service.request("GET", "/v1/pets", headers=each)
            assert_error(response, 401, "invalid_api_key")
            assert response.headers.get_list("WWW-Authenticate") == [BAD_TOKEN]
            assert token not in response.text


async def test_a_token_in_any_case_of_bearer_is_taken_until_its_key_is_revoked(
    service: Service,
) -> None:
    key = await service.issue()
    for scheme in ("Bearer", "bearer", "BEARER", "Bearer  "):
        with case(scheme):
            headers = {"Authorization": f"{scheme} {key.token}"}
            response = await service.request("GET", "/v1/pets", headers=headers)
            assert response.status_code == 200
    await revoke(service.store, service.clock, key.id)
    await service.status_becomes(key.token, 401)


# Tokens that are made up


class WatchedStore(SqliteStore):
    """Counts look-ups of tokens; each takes some turns of the loop, as across a network."""

    look_ups = 0

    async def read(self, statement: Statement) -> list[Row]:
        if "api_key_tokens" in statement.sql:
            self.look_ups += 1
            for _ in range(10):
                await asyncio.sleep(0)
        return await super().read(statement)


@pytest.fixture
async def watched(database: Path) -> WatchedStore:
    return WatchedStore(database)


@pytest.fixture
async def limited(database: Path, watched: WatchedStore) -> AsyncIterator[Service]:
    """A service that takes five requests a minute without a key."""
    async with running_service(
        database, store=watched, anonymous_per_minute=5, key_refresh_seconds=60
    ) as service:
        yield service


async def made_up(service: Service, requests: int) -> Counter[int]:
    """Send so many requests at once, each with a token of no key; return how often which status."""
    tokens = [new_token("production") for _ in range(requests)]
    responses = [service.request("GET", "/v1/pets", token) for token in tokens]
    return Counter(response.status_code for response in await asyncio.gather(*responses))


async def test_lookups_of_made_up_tokens_are_limited_like_requests_without_a_key(
    limited: Service, watched: WatchedStore
) -> None:
    for minute in range(1, 4):
        assert await made_up(limited, 3) == {401: 3}
        assert await made_up(limited, 200) == {401: 2, 429: 198}
        assert await made_up(limited, 200) == {429: 200}
        assert watched.look_ups == 5 * minute
        limited.clock.advance(20)
        response = await limited.request("GET", "/v1/pets", new_token("production"))
        message = assert_error(response, 429, "rate_limit_exceeded")
        assert "a key that the service knows, 5 requests a minute" in message
        assert response.headers["Retry-After"] == "40"
        assert response.headers["X-RateLimit-Limit"] == "5"
        assert response.headers["X-RateLimit-Remaining"] == "0"
        limited.clock.advance(40)


async def test_operations_without_a_key_do_not_look_up_tokens(
    database: Path, watched: WatchedStore
) -> None:
    origin = "https://shop.example"
    preflight = {"Origin": origin, "Access-Control-Request-Method": "GET"}
    async with running_service(database, store=watched, allowed_origin=(origin,)) as service:
        for method, path in [
            *product(("GET", "HEAD"), ("/v1/openapi.json", "/healthz")),
            *product(("OPTIONS",), ("/v1/openapi.json", "/v1/pets")),
        ]:
            with case(method, path):
                token = new_token("production")
                response = await service.request(method, path, token, headers=preflight)
                assert response.is_success
    assert watched.look_ups == 0


async def test_valid_keys_work_from_an_address_without_made_up_tokens_and_cached_ones_from_any(
    limited: Service,
) -> None:
    for _ in range(10):  # which do not use up the look-ups of their address
        key = await limited.issue()
        assert (await limited.request("GET", "/v1/pets", key.token)).status_code == 200
    assert await made_up(limited, 100) == {401: 5, 429: 95}
    assert (await limited.request("GET", "/v1/pets", key.token)).status_code == 200
    limited.clock.advance(60)
    for _ in range(10):
        await limited.request("GET", "/v1/pets")
        await limited.request("GET", "/v1/pets", "malformed")
    another = await limited.issue()
    assert (await limited.request("GET", "/v1/pets", another.token)).status_code == 200


async def test_a_key_that_was_cached_works_after_a_change_to_keys(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=1) as service:
        key = await service.issue()
        assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200
        await made_up(service, 100)
        other = await service.issue()
        await change(service.store, service.clock, key.id, name="Till 2")
        await service.status_becomes(key.token, 404)
        response = await service.request("GET", "/v1/pets", other.token)
        assert_error(response, 429, "rate_limit_exceeded")
