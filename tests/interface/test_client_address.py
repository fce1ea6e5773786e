"""The limit by address, and which proxies are trusted."""

from ipaddress import ip_network
from pathlib import Path

import pytest

from petstore.domain.networks import client_address
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


PROXIES = (ip_network("10.0.0.0/8"), ip_network("fd00::/8"), ip_network("fe80::/10"))


def test_at_most_20_hops_are_followed() -> None:
    for hops in (0, 19, 20, 21, 6_000):
        proxies = [f"10.1.{n // 250}.{n % 250}" for n in range(hops)]
        forwarded = ", ".join(["192.0.2.1", *proxies]).encode()
        expected = "192.0.2.1" if hops < 20 else proxies[-20]
        assert client_address("10.0.0.1", forwarded, PROXIES) == expected


LONGEST = "2001:0db8:0000:0000:0000:ffff:255.255.255.255"


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        # The nearest address that is not a proxy's.
        ("10.0.0.1", "192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", " 192.0.2.1 ", "192.0.2.1"),
        ("10.0.0.1", "198.51.100.9, 192.0.2.1,10.1.2.3, fd00::1", "192.0.2.1"),
        ("10.0.0.1", "nonsense, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "::ffff:192.0.2.1, ::ffff:10.1.2.3", "::ffff:192.0.2.1"),
        ("10.0.0.1", "10.0.0.9, 10.0.0.2", "10.0.0.9"),
        ("fe80::1%eth0", "192.0.2.1", "192.0.2.1"),
        # Without its port, in any length.
        ("10.0.0.1", "203.0.113.9:4711", "203.0.113.9"),
        ("10.0.0.1", "[2001:db8::9]:443", "2001:db8::9"),
        ("10.0.0.1", LONGEST, LONGEST),
        ("10.0.0.1", f"[{LONGEST}]:65535", LONGEST),
        # What is no address counts as the proxy that sent it.
        *(
            ("10.0.0.1", forwarded, "10.0.0.1")
            for forwarded in (
                *("", "unknown", "192.0.2.1, _hidden", "192.0.2.1, ", "192.0.2.1, 300.0.0.1"),
                *("192.0.2.1, fe80::1%eth0", "192.0.2.1, [fe80::1%eth0]:443"),
                *(f"192.0.2.1, ::{'0' * 44}1", f"192.0.2.1, {'1' * 60_000}"),
            )
        ),
        # A peer that is no proxy, or has no address.
        ("192.0.2.7", "192.0.2.1", "192.0.2.7"),
        ("", "192.0.2.1", ""),
    ],
    ids=lambda text: text[:30],
)
def test_the_client_is_the_nearest_address_that_is_no_proxy(
    peer: str, forwarded: str, client: str
) -> None:
    assert client_address(peer, forwarded.encode(), PROXIES) == client
