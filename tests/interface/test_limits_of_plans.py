"""interface.md, "Request rate, by plan"."""

import pytest

from support.client import Client, IssueKey
from support.service import Service

PER_MINUTE = {"free": 60, "pro": 300, "business": 1_000}
PER_DAY = {"free": 1_000, "pro": 10_000, "business": 100_000}


def day_limit(client: Client) -> int:
    limit: int = client.get("/usage").json()["day"]["limit"]
    return limit


@pytest.mark.parametrize(("plan", "per_minute"), PER_MINUTE.items())
def test_a_plan_admits_its_requests_of_a_minute_and_not_one_more(
    caller: IssueKey, plan: str, per_minute: int
) -> None:
    client = caller(plan)
    statuses = [client.list_pets(limit=1).status_code for _ in range(per_minute + 1)]
    assert statuses == [200] * per_minute + [429]


@pytest.mark.anyio
async def test_the_free_plan_admits_its_requests_of_a_day_and_not_one_more(
    service: Service,
) -> None:
    token = (await service.issue("free")).token
    for _ in range(PER_DAY["free"]):
        admitted = await service.request("GET", "/v1/pets", token)
        assert admitted.status_code == 200
        service.clock.advance(1)
    refused = await service.request("GET", "/v1/pets", token)
    assert refused.status_code == 429
    assert refused.headers["X-RateLimit-Limit"] == str(PER_DAY["free"])


@pytest.mark.parametrize(("plan", "per_minute"), PER_MINUTE.items())
def test_the_headers_have_the_limit_of_the_plan(
    caller: IssueKey, plan: str, per_minute: int
) -> None:
    headers = caller(plan).list_pets(limit=1).headers
    assert headers["X-RateLimit-Limit"] == str(per_minute)
    assert headers["X-RateLimit-Remaining"] == str(per_minute - 1)


@pytest.mark.parametrize(("plan", "per_day"), PER_DAY.items())
def test_a_plan_has_its_requests_of_a_day(caller: IssueKey, plan: str, per_day: int) -> None:
    assert day_limit(caller(plan)) == per_day


def test_the_limits_of_enterprise_are_set_for_each_customer(caller: IssueKey) -> None:
    client = caller("enterprise", "--per-minute", "2", "--per-day", "7")
    assert day_limit(client) == 7
    statuses = [client.list_pets(limit=1).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
