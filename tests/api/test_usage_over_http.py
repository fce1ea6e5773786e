"""The usage of a key."""

import pytest

from petstore.clock import DAY
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

NOON = 1_796_126_400
MIDNIGHT = NOON + 43_200


async def spend(service: Service, token: str, count: int) -> None:
    for _ in range(count):
        await service.request("GET", "/v1/x", token)


async def test_usage_needs_a_key(service: Service) -> None:
    assert_error(await service.request("GET", "/v1/usage"), 401, "missing_api_key")


async def test_a_fresh_key_has_used_nothing(service: Service) -> None:
    key = await service.issue("free")
    usage = (await service.request("GET", "/v1/usage", key.token)).json()
    days = usage.pop("days")
    assert usage == {
        "plan": "free",
        "minute": {"limit": 60, "remaining": 60, "reset": NOON + 60},
        "day": {"limit": 1000, "remaining": 1000, "reset": MIDNIGHT},
        "bannedUntil": None,
        "deprecated": [],
    }
    assert len(days) == 30
    assert days[0] == {"date": "2026-11-02", "requests": 0}
    assert days[-1] == {"date": "2026-12-01", "requests": 0}


async def test_usage_costs_nothing(service: Service) -> None:
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


async def test_usage_works_while_the_key_is_banned_and_shows_until_when(
    service: Service,
) -> None:
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


async def test_usage_shows_the_last_30_days(service: Service) -> None:
    key = await service.issue("free")
    for count in (4, 0, 7):
        await spend(service, key.token, count)
        await service.limiter.save()
        service.clock.now += DAY
    usage = (await service.request("GET", "/v1/usage", key.token)).json()
    assert [day["requests"] for day in usage["days"][-4:]] == [4, 0, 7, 0]
    service.clock.now += 27 * DAY
    usage = (await service.request("GET", "/v1/usage", key.token)).json()
    assert usage["days"][0] == {"date": "2026-12-02", "requests": 0}
    assert usage["days"][1] == {"date": "2026-12-03", "requests": 7}
    assert sum(day["requests"] for day in usage["days"]) == 7


async def test_usage_of_past_days_outlives_a_restart(address: str) -> None:
    async with running_service(address) as service:
        key = await service.issue("free")
        await spend(service, key.token, 4)
    async with running_service(address) as service:
        service.clock.now += DAY
        usage = (await service.request("GET", "/v1/usage", key.token)).json()
        assert [day["requests"] for day in usage["days"][-2:]] == [4, 0]


async def test_usage_of_one_key_is_not_shown_to_another(service: Service) -> None:
    busy, idle = await service.issue("free"), await service.issue("free")
    await spend(service, busy.token, 5)
    usage = (await service.request("GET", "/v1/usage", idle.token)).json()
    assert usage["day"]["remaining"] == 1000


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
    assert "this key for getUsage, 60 requests a minute" in message
    assert response.headers.get_list("Retry-After") == ["45"]
    assert response.headers.get_list("X-RateLimit-Limit") == ["60"]
    assert response.headers.get_list("X-RateLimit-Remaining") == ["0"]
    assert response.headers.get_list("X-RateLimit-Reset") == [str(NOON + 60)]
    assert response.headers.get_list("RateLimit") == ['"minute";r=0;t=45']
    service.clock.advance(45)
    assert (await service.request("GET", "/v1/usage", key.token)).status_code == 200


async def test_to_be_refused_the_usage_is_no_strike_and_costs_nothing(address: str) -> None:
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
