"""The usage of a key."""

import pytest

from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

NOON = 1_796_126_400
MIDNIGHT = NOON + 43_200


async def spend(service: Service, token: str, count: int) -> None:
    for _ in range(count):
        await service.request("GET", "/v1/x", token)


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


async def test_each_of_30_days_has_its_requests(service: Service) -> None:
    key = await service.issue("pro")

    async def requests() -> list[int]:
        usage = (await service.request("GET", "/v1/usage", key.token)).json()
        return [day["requests"] for day in usage["days"]]

    await spend(service, key.token, 1)
    service.clock.advance(86_400)
    await spend(service, key.token, 2)
    service.clock.advance(28 * 86_400)
    await spend(service, key.token, 3)
    await service.app.services.limiter.save()
    assert await requests() == [1, 2] + [0] * 27 + [3]
    service.clock.advance(86_400)
    assert await requests() == [2] + [0] * 27 + [3, 0]


async def test_a_clock_that_steps_back_over_midnight_leaves_30_days(service: Service) -> None:
    key = await service.issue("pro")
    service.clock.advance(43_200 + 10)
    await spend(service, key.token, 1)
    service.clock.advance(-20)
    usage = (await service.request("GET", "/v1/usage", key.token)).json()
    assert [day["requests"] for day in usage["days"]] == [0] * 29 + [1]


async def test_refused_requests_of_the_last_7_days_are_listed_by_hour(service: Service) -> None:
    key = await service.issue(per_minute=1)
    for _ in range(2):
        await service.request("GET", "/v1/pets", key.token)
        await spend(service, key.token, 2)
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


async def test_usage_requests_do_not_count_against_the_limit(service: Service) -> None:
    key = await service.issue("free")
    await spend(service, key.token, 3)
    for method in ("GET", "HEAD", "GET"):
        response = await service.request(method, "/v1/usage", key.token)
        assert response.headers["X-RateLimit-Remaining"] == "57"
    assert response.json()["minute"]["remaining"] == 57
    assert response.json()["day"]["remaining"] == 997
    assert response.json()["days"][-1]["requests"] == 3


async def test_usage_works_while_the_limit_is_reached(service: Service) -> None:
    key = await service.issue(per_minute=2)
    await spend(service, key.token, 5)
    response = await service.request("GET", "/v1/usage", key.token)
    assert response.status_code == 200
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert response.json()["minute"] == {"limit": 2, "remaining": 0, "reset": NOON + 60}
    assert response.json()["days"][-1]["requests"] == 2


async def test_a_banned_key_can_get_its_usage_and_the_end_of_its_ban(service: Service) -> None:
    key = await service.issue(per_minute=1)
    await spend(service, key.token, 2)
    service.clock.advance(2)
    await spend(service, key.token, 20)
    assert_error(await service.request("GET", "/v1/pets", key.token), 429, "api_key_banned")
    response = await service.request("GET", "/v1/usage", key.token)
    assert response.status_code == 200
    assert response.json()["bannedUntil"] == "2026-12-01T12:05:02Z"
    assert response.headers["X-RateLimit-Reset"] == str(NOON + 302)
    service.clock.advance(300)
    response = await service.request("GET", "/v1/usage", key.token)
    assert response.json()["bannedUntil"] is None


# Its own limit


async def test_a_key_can_get_its_usage_60_times_a_minute(service: Service) -> None:
    key = await service.issue("free")
    for number in range(60):
        method = "HEAD" if number % 2 else "GET"
        response = await service.request(method, "/v1/usage", key.token)
        assert response.status_code == 200
        assert response.headers["X-RateLimit-Remaining"] == "60"
    service.clock.advance(15)
    response = await service.request("GET", "/v1/usage", key.token)
    message = assert_error(response, 429, "rate_limit_exceeded")
    assert "this key for requests that cost nothing, 60 requests a minute" in message
    assert response.headers.get_list("Retry-After") == ["45"]
    assert response.headers.get_list("X-RateLimit-Limit") == ["60"]
    assert response.headers.get_list("X-RateLimit-Remaining") == ["0"]
    assert response.headers.get_list("X-RateLimit-Reset") == [str(NOON + 60)]
    assert response.headers.get_list("RateLimit") == ['"minute";r=0;t=45']
    service.clock.advance(45)
    assert (await service.request("GET", "/v1/usage", key.token)).status_code == 200


async def test_a_refused_usage_request_is_not_a_strike_and_does_not_count(address: str) -> None:
    async with running_service(address, usage_per_minute=1) as service:
        key, other = await service.issue("free"), await service.issue("free")
        await service.request("GET", "/v1/usage", key.token)
        for _ in range(100):
            service.clock.advance(0.5)
            response = await service.request("GET", "/v1/usage", key.token)
            assert_error(response, 429, "rate_limit_exceeded")
        response = await service.request("GET", "/v1/pets", key.token)
        assert response.status_code == 200
        assert response.headers["X-RateLimit-Remaining"] == "59"
        assert (await service.request("GET", "/v1/usage", other.token)).status_code == 200
