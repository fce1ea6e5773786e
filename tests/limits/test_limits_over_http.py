"""Limits, bans and usage as a client meets them; their rules are tested in ``test_decide``."""

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


# The usage of a key


async def test_a_new_key_has_no_usage(service: Service) -> None:
    key = await service.issue("free")
    usage = (await service.request("GET", "/v1/usage", key.token)).json()
    days = usage.pop("days")
    assert usage == {
        "plan": "free",
        "minute": {"limit": 60, "remaining": 60, "reset": NOON + 60},
        "day": {"limit": 1000, "remaining": 1000, "reset": MIDNIGHT},
        "bannedUntil": None,
        "deprecated": [],
        "refused": [],
        "scopes": ["pets:read", "pets:write", "orders:read", "orders:write"],
    }
    assert len(days) == 30
    assert days[0] == {"date": "2026-11-02", "requests": 0}
    assert days[-1] == {"date": "2026-12-01", "requests": 0}


async def test_each_of_30_days_has_its_requests_even_if_the_clock_steps_back(
    service: Service,
) -> None:
    key = await service.issue("pro")

    async def requests() -> list[int]:
        usage = (await service.request("GET", "/v1/usage", key.token)).json()
        return [day["requests"] for day in usage["days"]]

    for days, count in ((0, 1), (1, 2), (28, 3)):
        service.clock.advance(days * 86_400)
        await spend(service, key.token, count)
    await service.app.services.limiter.save()
    assert await requests() == [1, 2] + [0] * 27 + [3]
    service.clock.advance(86_400)
    assert await requests() == [2] + [0] * 27 + [3, 0]
    service.clock.advance(43_200 + 10)
    await spend(service, key.token, 1)
    service.clock.advance(-20)  # over midnight
    assert await requests() == [0] * 27 + [3, 0, 1]


async def test_refused_requests_of_the_last_7_days_are_listed_by_hour(service: Service) -> None:
    key = await service.issue(per_minute=1)
    for _ in range(2):
        await spend(service, key.token, 1)
        await strike(service, key.token, 2)
        service.clock.advance(3_600)

    async def refused() -> list[tuple[str, str | None, int]]:
        usage = (await service.request("GET", "/v1/usage", key.token)).json()
        return [tuple(each.values()) for each in usage["refused"]]

    await service.app.services.counter.save()
    newest = ("2026-12-01T13:00:00Z", None, 2)
    assert await refused() == [newest, ("2026-12-01T12:00:00Z", None, 2)]
    service.clock.advance(7 * 86_400 - 7_200)
    assert await refused() == [newest]
    service.clock.advance(3_600)
    assert await refused() == []


async def test_usage_costs_nothing_and_works_at_a_limit_and_during_a_ban(service: Service) -> None:
    key = await service.issue(per_minute=4)
    await spend(service, key.token, 3)
    for method in ("GET", "HEAD", "GET"):
        response = await service.request(method, "/v1/usage", key.token)
        assert response.headers["X-RateLimit-Remaining"] == "1"
    await spend(service, key.token, 1)
    await strike(service, key.token, 1)
    response = await service.request("GET", "/v1/usage", key.token)
    assert response.status_code == 200
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert response.json()["minute"] == {"limit": 4, "remaining": 0, "reset": NOON + 60}
    assert response.json()["days"][-1]["requests"] == 4
    service.clock.advance(2)
    await strike(service, key.token, 19)
    assert_error(await service.request("GET", "/v1/pets", key.token), 429, "api_key_banned")
    response = await service.request("GET", "/v1/usage", key.token)
    assert response.status_code == 200
    assert response.json()["bannedUntil"] == "2026-12-01T12:05:02Z"
    assert response.headers["X-RateLimit-Reset"] == str(NOON + 302)
    service.clock.advance(300)
    response = await service.request("GET", "/v1/usage", key.token)
    assert response.json()["bannedUntil"] is None


async def test_a_key_can_get_its_usage_60_times_a_minute_and_more_are_no_strikes(
    service: Service,
) -> None:
    key, other = await service.issue("free"), await service.issue("free")
    for number in range(60):
        method = "HEAD" if number % 2 else "GET"
        response = await service.request(method, "/v1/usage", key.token)
        assert response.status_code == 200
        assert response.headers["X-RateLimit-Remaining"] == "60"
    for _ in range(100):
        service.clock.advance(0.15)
        response = await service.request("GET", "/v1/usage", key.token)
        message = assert_error(response, 429, "rate_limit_exceeded")
    assert "this key for requests that cost nothing, 60 requests a minute" in message
    for name, value in (
        *(("Retry-After", "45"), ("RateLimit", '"minute";r=0;t=45'), ("X-RateLimit-Limit", "60")),
        *(("X-RateLimit-Remaining", "0"), ("X-RateLimit-Reset", str(NOON + 60))),
    ):
        assert response.headers.get_list(name) == [value]
    response = await service.request("GET", "/v1/pets", key.token)
    assert (response.status_code, response.headers["X-RateLimit-Remaining"]) == (200, "59")
    assert (await service.request("GET", "/v1/usage", other.token)).status_code == 200
    service.clock.advance(45)
    assert (await service.request("GET", "/v1/usage", key.token)).status_code == 200
