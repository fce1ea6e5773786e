"""Limits and bans as a client meets them."""

import asyncio

import pytest

from petstore.clock import DAY, SECOND
from petstore.domain.plans import PlanName
from support.error_body import assert_error
from support.keys import change, unban
from support.service import Service, running_service

pytestmark = [pytest.mark.anyio, pytest.mark.each_database]

MINUTE = 60


async def spend(service: Service, token: str, count: int) -> None:
    """Make ``count`` requests and expect that all are admitted."""
    for _ in range(count):
        assert (await service.request("GET", "/v1/x", token)).status_code == 404


async def strike(service: Service, token: str, count: int) -> None:
    """Make ``count`` requests over the limit, late enough after its first 429 to be strikes."""
    for _ in range(count):
        response = await service.request("GET", "/v1/x", token)
        assert_error(response, 429, "rate_limit_exceeded")


async def get_banned(service: Service, token: str) -> int:
    """Spend the limit of one a minute, go on asking, and return the ban's ``Retry-After``."""
    await spend(service, token, 1)
    await strike(service, token, 1)
    service.clock.advance(2)
    await strike(service, token, 19)
    response = await service.request("GET", "/v1/x", token)
    assert_error(response, 429, "api_key_banned")
    return int(response.headers["Retry-After"])


@pytest.mark.parametrize(("plan", "per_minute"), [("free", 60), ("pro", 300), ("business", 1_000)])
async def test_a_request_over_the_minute_of_the_plan_is_refused(
    service: Service, plan: PlanName, per_minute: int
) -> None:
    key = await service.issue(plan)
    await spend(service, key.token, per_minute)
    response = await service.request("GET", "/v1/pets", key.token)
    assert str(per_minute) in assert_error(response, 429, "rate_limit_exceeded")
    assert response.headers["X-RateLimit-Limit"] == str(per_minute)
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert response.headers["Retry-After"] == "60"


async def test_a_request_over_the_day_of_the_plan_is_refused_until_midnight(
    service: Service,
) -> None:
    key = await service.issue("free")
    for _ in range(16):
        await spend(service, key.token, 60)
        service.clock.advance(MINUTE)
    await spend(service, key.token, 40)
    response = await service.request("GET", "/v1/pets", key.token)
    assert_error(response, 429, "rate_limit_exceeded")
    assert response.headers["X-RateLimit-Limit"] == "1000"
    midnight = 20_789 * 86_400
    assert int(response.headers["X-RateLimit-Reset"]) == midnight
    assert int(response.headers["Retry-After"]) == midnight - service.clock() // SECOND
    service.clock.now = midnight * SECOND
    response = await service.request("GET", "/v1/pets", key.token)
    assert response.status_code == 200


@pytest.mark.parametrize("late", [0, 1, 500, 999])
async def test_waiting_for_retry_after_is_enough_and_never_too_short(
    service: Service, late: int
) -> None:
    service.clock.now += late
    key = await service.issue(per_minute=1)
    await spend(service, key.token, 1)
    service.clock.now += 1
    refused = await service.request("GET", "/v1/pets", key.token)
    reset = int(refused.headers["X-RateLimit-Reset"])
    wait = int(refused.headers["Retry-After"])
    assert service.clock() + wait * SECOND >= reset * SECOND
    service.clock.advance(wait)
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200


async def test_retry_after_is_at_least_one_second(service: Service) -> None:
    key = await service.issue(per_minute=1)
    await spend(service, key.token, 1)
    service.clock.now += 59_999
    response = await service.request("GET", "/v1/pets", key.token)
    assert response.status_code == 429
    assert response.headers["Retry-After"] == "1"


async def test_a_window_ends_to_the_millisecond(service: Service) -> None:
    key = await service.issue(per_minute=1)
    service.clock.now += 250
    await spend(service, key.token, 1)
    service.clock.now += 59_999
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 429
    service.clock.now += 1
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200


async def test_the_reset_is_fixed_for_the_whole_window(service: Service) -> None:
    key = await service.issue(per_minute=10)
    resets = set()
    for _ in range(12):
        response = await service.request("GET", "/v1/pets", key.token)
        resets.add(response.headers["X-RateLimit-Reset"])
        service.clock.advance(4)
    assert resets == {str(1_796_126_400 + 60)}


async def test_concurrent_requests_are_admitted_exactly_up_to_the_limit(service: Service) -> None:
    key = await service.issue("free")
    responses = await asyncio.gather(
        *(service.request("GET", "/v1/pets", key.token) for _ in range(100))
    )
    statuses = [response.status_code for response in responses]
    assert statuses.count(200) == 60
    assert statuses.count(429) == 40


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/pets", 200),
        ("HEAD", "/v1/pets", 200),
        ("GET", "/v1/pets/7", 404),
        ("GET", "/v1/x", 404),
        ("PUT", "/v1/pets", 405),
        ("POST", "/v1/pets", 400),
        ("GET", "/v1/pets?limit=0", 400),
        ("POST", "/v1/usage", 405),
    ],
)
async def test_every_request_counts_whatever_its_outcome(
    service: Service, method: str, path: str, status: int
) -> None:
    key = await service.issue(per_minute=10)
    response = await service.request(method, path, key.token)
    assert response.status_code == status
    assert response.headers["X-RateLimit-Remaining"] == "9"


async def test_a_refused_request_costs_nothing_in_the_day(service: Service) -> None:
    key = await service.issue(per_minute=1, per_day=10)
    await spend(service, key.token, 1)
    await strike(service, key.token, 5)
    usage = (await service.request("GET", "/v1/usage", key.token)).json()
    assert usage["day"]["remaining"] == 9


async def test_rotation_and_plan_changes_keep_the_usage(service: Service) -> None:
    key = await service.issue("free")
    await spend(service, key.token, 60)
    await change(service.store, service.clock, key.key.id, plan="pro")
    await service.status_becomes(key.token, 404)
    response = await service.request("GET", "/v1/pets", key.token)
    assert response.status_code == 200
    assert response.headers["X-RateLimit-Limit"] == "300"
    assert response.headers["X-RateLimit-Remaining"] == str(300 - 62)


async def test_a_restart_keeps_the_usage(address: str) -> None:
    async with running_service(address) as service:
        key = await service.issue("free")
        await spend(service, key.token, 60)
    async with running_service(address) as service:
        await strike(service, key.token, 1)


async def test_a_clock_that_steps_back_grants_nothing(service: Service) -> None:
    key = await service.issue(per_minute=2, per_day=3)
    await spend(service, key.token, 2)
    for seconds in (-30, -3_600, -86_400):
        service.clock.advance(seconds)
        response = await service.request("GET", "/v1/pets", key.token)
        assert response.status_code == 429
        assert int(response.headers["Retry-After"]) >= 1


# The headers


async def test_the_headers_describe_the_window_with_fewer_left(service: Service) -> None:
    key = await service.issue(per_minute=10, per_day=5)
    response = await service.request("GET", "/v1/pets", key.token)
    assert response.headers["X-RateLimit-Limit"] == "5"
    assert response.headers["X-RateLimit-Remaining"] == "4"
    assert response.headers["X-RateLimit-Reset"] == str(20_789 * 86_400)


async def test_on_a_tie_the_headers_describe_the_later_reset(service: Service) -> None:
    key = await service.issue(per_minute=5, per_day=5)
    response = await service.request("GET", "/v1/pets", key.token)
    assert response.headers["X-RateLimit-Reset"] == str(20_789 * 86_400)


async def test_both_windows_stand_beside_them(service: Service) -> None:
    key = await service.issue("free")
    service.clock.now += 500
    await spend(service, key.token, 2)
    service.clock.advance(10)
    response = await service.request("GET", "/v1/pets", key.token)
    policy = '"minute";q=60;w=60, "day";q=1000;w=86400'
    assert response.headers["RateLimit-Policy"] == policy
    assert response.headers["RateLimit"] == '"minute";r=57;t=50, "day";r=997;t=43189'


async def test_a_key_without_limits_reports_the_largest_value(service: Service) -> None:
    key = await service.issue("enterprise")
    await spend(service, key.token, 100)
    response = await service.request("GET", "/v1/pets", key.token)
    assert response.headers["X-RateLimit-Limit"] == "2147483647"
    assert response.headers["X-RateLimit-Remaining"] == "2147483647"
    assert not {"RateLimit", "RateLimit-Policy"} & set(response.headers)


@pytest.mark.parametrize("status", [200, 401, 404])
async def test_retry_after_stands_only_where_there_is_something_to_wait_for(
    service: Service, status: int
) -> None:
    key = await service.issue()
    path = "/v1/x" if status == 404 else "/v1/pets"
    response = await service.request("GET", path, None if status == 401 else key.token)
    assert response.status_code == status
    assert "Retry-After" not in response.headers


# Bans


async def test_a_burst_right_behind_the_first_429_is_innocent(service: Service) -> None:
    key = await service.issue(per_minute=1)
    await spend(service, key.token, 1)
    await strike(service, key.token, 1)
    service.clock.advance(1)
    await strike(service, key.token, 200)


async def test_a_key_that_does_not_listen_is_banned_for_five_minutes(service: Service) -> None:
    key = await service.issue(per_minute=1)
    assert await get_banned(service, key.token) == 300
    service.clock.advance(299.999)
    response = await service.request("GET", "/v1/pets", key.token)
    assert_error(response, 429, "api_key_banned")
    assert response.headers["Retry-After"] == "1"
    service.clock.advance(0.001)
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200


async def test_requests_during_a_ban_do_not_extend_it(service: Service) -> None:
    key = await service.issue(per_minute=1)
    wait = await get_banned(service, key.token)
    until = service.clock() // SECOND + wait
    for _ in range(50):
        service.clock.advance(5)
        response = await service.request("GET", "/v1/pets", key.token)
        assert_error(response, 429, "api_key_banned")
        assert abs(int(response.headers["X-RateLimit-Reset"]) - until) <= 1
    service.clock.advance(50)
    assert (await service.request("GET", "/v1/pets", key.token)).status_code == 200


async def test_a_larger_plan_takes_more_strikes(service: Service) -> None:
    key = await service.issue("pro")
    await spend(service, key.token, 300)
    await strike(service, key.token, 1)
    service.clock.advance(1.001)
    await strike(service, key.token, 99)
    assert_error(await service.request("GET", "/v1/x", key.token), 429, "api_key_banned")


async def test_each_next_ban_is_twice_as_long_up_to_a_day(service: Service) -> None:
    key = await service.issue(per_minute=1)
    waits = []
    for _ in range(11):
        waits.append(await get_banned(service, key.token))
        service.clock.advance(waits[-1])
    minutes = [5, 10, 20, 40, 80, 160, 320, 640, 1280, 1440, 1440]
    assert waits == [60 * n for n in minutes]


async def test_a_clean_day_forgives_one_step(service: Service) -> None:
    key = await service.issue(per_minute=1)
    for expected in (300, 600, 1200):
        wait = await get_banned(service, key.token)
        assert wait == expected
        service.clock.advance(wait)
    service.clock.now += DAY
    assert await get_banned(service, key.token) == 1200
    service.clock.advance(1200)
    service.clock.now += 4 * DAY
    assert await get_banned(service, key.token) == 300


async def test_a_ban_outlives_a_restart(address: str) -> None:
    async with running_service(address) as service:
        key = await service.issue(per_minute=1)
        await get_banned(service, key.token)
        now = service.clock.now
    async with running_service(address) as service:
        service.clock.now = now
        assert_error(await service.request("GET", "/v1/x", key.token), 429, "api_key_banned")


async def test_an_unbanned_key_is_admitted_within_a_second(service: Service) -> None:
    key = await service.issue(per_minute=1)
    await get_banned(service, key.token)
    service.clock.advance(MINUTE)
    await unban(service.store, service.clock, key.key.id)
    await service.status_becomes(key.token, 404)


async def test_the_numbers_of_a_ban_are_settings(address: str) -> None:
    async with running_service(
        address, ban_strikes=2, ban_grace_seconds=0, ban_seconds=7
    ) as service:
        key = await service.issue(per_minute=1)
        await spend(service, key.token, 1)
        await strike(service, key.token, 1)
        service.clock.advance(1)
        await strike(service, key.token, 1)
        response = await service.request("GET", "/v1/pets", key.token)
        assert_error(response, 429, "api_key_banned")
        assert response.headers["Retry-After"] == "7"


async def test_one_key_does_not_touch_another(service: Service) -> None:
    banned, other = await service.issue(per_minute=1), await service.issue(per_minute=1)
    await get_banned(service, banned.token)
    assert (await service.request("GET", "/v1/pets", other.token)).status_code == 200
