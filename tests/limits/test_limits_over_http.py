"""Limits and bans as a client meets them; their rules are tested in ``rate_limits``."""

from typing import Any

import pytest

from petstore.clock import SECOND
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

NOON = 1_796_126_400
MIDNIGHT = NOON + 43_200


async def spend(service: Service, token: str, count: int) -> None:
    """Make ``count`` requests and expect that all are admitted."""
    for _ in range(count):
        assert (await service.request("GET", "/v1/x", token)).status_code == 404


async def strike(service: Service, token: str, count: int) -> None:
    """Make ``count`` requests over the limit, late enough after its first 429 to be strikes."""
    for _ in range(count):
        response = await service.request("GET", "/v1/x", token)
        assert_error(response, 429, "rate_limit_exceeded")


@pytest.mark.parametrize(
    ("limits", "limit", "reset"),
    [({"plan": "free"}, 60, NOON + 60), ({"per_minute": 10, "per_day": 5}, 5, MIDNIGHT)],
)
async def test_a_request_over_a_limit_is_refused_until_its_window_ends(
    service: Service, limits: dict[str, Any], limit: int, reset: int
) -> None:
    key = await service.issue(**limits)
    await spend(service, key.token, limit)
    response = await service.request("GET", "/v1/pets", key.token)
    assert str(limit) in assert_error(response, 429, "rate_limit_exceeded")
    assert response.headers["X-RateLimit-Limit"] == str(limit)
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert response.headers["X-RateLimit-Reset"] == str(reset)
    assert response.headers["Retry-After"] == str(reset - NOON)
    service.clock.now = reset * SECOND
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200


async def test_every_request_counts_whatever_its_outcome(service: Service) -> None:
    key = await service.issue(per_minute=10)
    for count, (method, path, status) in enumerate(
        (
            *(("GET", "/v1/pets", 200), ("HEAD", "/v1/pets", 200), ("GET", "/v1/pets/7", 404)),
            *(("GET", "/v1/x", 404), ("PUT", "/v1/pets", 405), ("POST", "/v1/usage", 405)),
            *(("POST", "/v1/pets", 400), ("GET", "/v1/pets?limit=0", 400)),
        ),
        1,
    ):
        response = await service.request(method, path, key.token)
        assert response.status_code == status
        assert response.headers["X-RateLimit-Remaining"] == str(10 - count)


async def test_both_windows_are_in_the_headers(service: Service) -> None:
    key = await service.issue("free")
    service.clock.now += 500
    await spend(service, key.token, 2)
    service.clock.advance(10)
    response = await service.request("GET", "/v1/pets", key.token)
    policy = '"minute";q=60;w=60, "day";q=1000;w=86400'
    assert response.headers["RateLimit-Policy"] == policy
    assert response.headers["RateLimit"] == '"minute";r=57;t=50, "day";r=997;t=43189'
    assert "Retry-After" not in response.headers


async def test_a_key_that_ignores_429s_is_banned_for_five_minutes(service: Service) -> None:
    key, other = await service.issue(per_minute=1), await service.issue(per_minute=1)
    await spend(service, key.token, 1)
    await strike(service, key.token, 1)
    service.clock.advance(2)
    await strike(service, key.token, 19)
    response = await service.request("GET", "/v1/x", key.token)
    assert_error(response, 429, "api_key_banned")
    assert response.headers["Retry-After"] == "300"
    service.clock.advance(299.999)
    response = await service.request("GET", "/v1/pets", key.token)
    assert_error(response, 429, "api_key_banned")
    assert response.headers["X-RateLimit-Reset"] == str(NOON + 302)
    assert response.headers["Retry-After"] == "1"
    assert (await service.request("GET", "/v1/pets", other.token)).status_code == 200
    service.clock.advance(0.001)
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200


async def test_the_strikes_and_the_length_of_a_ban_are_settings(address: str) -> None:
    async with running_service(
        address, ban_strikes=2, ban_grace_seconds=2, ban_seconds=7
    ) as service:
        key = await service.issue(per_minute=1)
        await spend(service, key.token, 1)
        await strike(service, key.token, 1)
        for grace in (2, 1):
            service.clock.advance(grace)
            await strike(service, key.token, grace)
        response = await service.request("GET", "/v1/pets", key.token)
        assert_error(response, 429, "api_key_banned")
        assert response.headers["Retry-After"] == "7"
