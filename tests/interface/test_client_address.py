"""The limit by address, and by the client's address behind a trusted proxy."""

from pathlib import Path

import pytest

from petstore.keys.model import new_token
from support.cases import case
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

PROXY = ("127.0.0.0/8", "10.0.0.0/8", "fd00::/8")


async def remaining(service: Service, *forwarded: str) -> int:
    """Make a request without a key and return what is left for its address."""
    headers = [("X-Forwarded-For", value) for value in forwarded]
    response = await service.request("GET", "/v1/pets", headers=headers)
    return int(response.headers["X-RateLimit-Remaining"])


async def test_an_address_has_300_requests_a_minute_without_a_key_and_more_with_one(
    service: Service,
) -> None:
    key = await service.issue()
    for _ in range(5):
        await service.request("GET", "/v1/x", key.token)
    for _ in range(300):
        assert_error(await service.request("GET", "/v1/pets"), 401, "missing_api_key")
    response = await service.request("GET", "/v1/pets")
    assert "300" in assert_error(response, 429, "rate_limit_exceeded")
    assert response.headers["Retry-After"] == "60"
    assert response.headers["X-RateLimit-Remaining"] == "0"
    response = await service.request("GET", "/v1/pets", key.token)
    assert response.status_code == 200
    assert response.headers["X-RateLimit-Limit"] == "2147483647"
    service.clock.advance(60)
    assert_error(await service.request("GET", "/v1/pets"), 401, "missing_api_key")


async def test_requests_without_a_valid_key_count_against_the_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=2) as service:
        sent: list[tuple[str, list[str | None], int]] = [
            ("none", [None] * 3, 401),
            ("malformed", ["x"] * 3, 401),
            ("unknown", [new_token("production") for _ in range(3)], 401),
            ("without a host", [None] * 3, 400),
        ]
        for name, tokens, status in sent:
            with case(name):
                got = []
                for token in tokens:
                    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
                    request = service.client.build_request("GET", "/v1/pets", headers=headers)
                    if name == "without a host":
                        del request.headers["Host"]
                    got.append((await service.client.send(request)).status_code)
                assert got == [status, status, 429]
            service.clock.advance(60)


async def test_free_requests_and_an_address_from_an_untrusted_peer_do_not_count(
    service: Service,
) -> None:
    for path in ("/v1/openapi.json", "/healthz", "/nothing"):
        await service.request("GET", path)
    assert await remaining(service, "192.0.2.1") == 299
    assert await remaining(service, "192.0.2.2") == 298


async def test_behind_a_trusted_proxy_each_client_or_ipv6_network_has_its_own_limit(
    database: Path,
) -> None:
    async with running_service(database, trusted_proxy=PROXY, max_tracked_addresses=10) as service:
        assert await remaining(service, "192.0.2.1") == 299
        assert await remaining(service, "192.0.2.1") == 298
        assert await remaining(service, "192.0.2.2") == 299
        assert await remaining(service) == 299
        assert await remaining(service, "2001:db8:0:1::1") == 299
        assert await remaining(service, "2001:db8:0:1:ffff:ffff:ffff:ffff") == 298
        assert await remaining(service, "2001:DB8:0:1::2") == 297
        assert await remaining(service, "2001:db8:0:2::1") == 299
        for n in range(50):  # more than are kept
            await remaining(service, f"198.51.100.{n}")
        assert await remaining(service, "198.51.100.49") == 298
        assert await remaining(service, "192.0.2.1") == 299
