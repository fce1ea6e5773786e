"""Keys that may be used from some networks alone."""

from pathlib import Path

import httpx
import pytest

from petstore.keys.model import SCOPES
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

HERE = "127.0.0.1"
ELSEWHERE = ("192.0.2.0/24",)
PROXIED = {"X-Forwarded-For": "192.0.2.7"}
ALL = frozenset(SCOPES)


async def list_pets(service: Service, token: str, client: str | None = None) -> httpx.Response:
    """List pets as ``client``, whose address a proxy passes on."""
    headers = {} if client is None else {"X-Forwarded-For": client}
    return await service.request("GET", "/v1/pets", token, headers=headers)


# From elsewhere


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v1/pets"), ("POST", "/v1/pets"), ("GET", "/v1/usage"), ("GET", "/v1/nothing")],
)
async def test_a_key_is_refused_outside_its_networks_whatever_it_requests(
    service: Service, method: str, path: str
) -> None:
    key = await service.issue(scopes=ALL, allowed_networks=ELSEWHERE)
    for _ in range(2):  # the second time from memory
        response = await service.request(method, path, key.token)
        message = assert_error(response, 403, "network_not_allowed")
        assert HERE in message
        assert "192.0.2" not in message


async def test_a_refusal_does_not_count_against_the_key_and_is_not_a_strike(database: Path) -> None:
    async with running_service(database, trusted_proxy=["127.0.0.1"]) as service:
        key = await service.issue(per_minute=1, allowed_networks=ELSEWHERE)
        for _ in range(50):
            service.clock.advance(0.5)
            await list_pets(service, key.token)
        response = await list_pets(service, key.token, "192.0.2.7")
        assert response.status_code == 200
        assert response.headers["X-RateLimit-Remaining"] == "0"
        usage = (await service.request("GET", "/v1/usage", key.token, headers=PROXIED)).json()
        assert usage["day"]["remaining"] == usage["day"]["limit"]
        assert sum(day["requests"] for day in usage["days"]) == 1


async def test_the_networks_are_checked_before_the_limits(database: Path) -> None:
    async with running_service(database, trusted_proxy=["127.0.0.1"]) as service:
        key = await service.issue(per_minute=1, allowed_networks=ELSEWHERE)
        clients = ("192.0.2.7", "192.0.2.7", "198.51.100.7")
        responses = [await list_pets(service, key.token, client) for client in clients]
        assert [response.status_code for response in responses] == [200, 429, 403]


async def test_a_refusal_counts_against_the_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=3) as service:
        key = await service.issue(allowed_networks=ELSEWHERE)
        other = await service.issue()
        for left in (2, 1, 0):
            response = await list_pets(service, key.token)
            assert_error(response, 403, "network_not_allowed")
            assert response.headers["X-RateLimit-Limit"] == "3"
            assert response.headers["X-RateLimit-Remaining"] == str(left)
        response = await list_pets(service, key.token)
        message = assert_error(response, 429, "rate_limit_exceeded")
        assert message.startswith("the limit of this address without a valid key, ")
        assert response.headers["Retry-After"] == "60"
        assert (await list_pets(service, other.token)).status_code == 200


# From its networks


@pytest.mark.parametrize(
    ("client", "status"),
    [
        *(("192.0.2.7", 200), ("::ffff:192.0.2.7", 200), ("192.0.3.7", 403)),
        *(("2001:db8::7", 200), ("2001:db9::7", 403), (None, 403), ("127.0.0.1", 403)),
    ],
)
async def test_the_client_address_behind_trusted_proxies_is_checked(
    database: Path, client: str | None, status: int
) -> None:
    async with running_service(database, trusted_proxy=["127.0.0.1"]) as service:
        key = await service.issue(allowed_networks=("192.0.2.0/24", "2001:db8::/32"))
        assert (await list_pets(service, key.token, client)).status_code == status


async def test_a_change_of_networks_takes_effect_at_once(service: Service) -> None:
    admin, key = await service.issue(scopes=ALL), await service.issue()
    path = f"/v1/keys/{key.id}"
    for networks, status in ([[*ELSEWHERE], 403], [["127.0.0.1"], 200], [[], 200]):
        response = await service.request(
            "PATCH", path, admin.token, json={"allowedNetworks": networks}
        )
        assert response.status_code == 200
        assert (await list_pets(service, key.token)).status_code == status
    assert response.json()["allowedNetworks"] == []


# No key gives more than it has, and nobody locks everybody out


async def test_the_last_admin_key_cannot_exclude_its_own_address(service: Service) -> None:
    admin = await service.issue(scopes=ALL)
    path, away = f"/v1/keys/{admin.id}", {"allowedNetworks": [*ELSEWHERE]}
    response = await service.request("PATCH", path, admin.token, json=away)
    assert_error(response, 409, "last_admin_key")
    near = {"allowedNetworks": [*ELSEWHERE, "127.0.0.1"]}
    assert (await service.request("PATCH", path, admin.token, json=near)).status_code == 200
    await service.issue(scopes=ALL)
    response = await service.request("PATCH", path, admin.token, json=away)
    assert response.status_code == 200
    assert_error(await list_pets(service, admin.token), 403, "network_not_allowed")
