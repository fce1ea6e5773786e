"""interface.md, "Request rate, by plan"."""

import pytest

from support.client import Client, IssueKey

PER_MINUTE = {"free": 60, "pro": 300, "business": 1_000}
PER_DAY = {"free": 1_000, "pro": 10_000, "business": 100_000}


def day_limit(client: Client) -> int:
    limit: int = client.get("/usage").json()["day"]["limit"]
    return limit


def test_a_plan_admits_exactly_its_requests_per_minute(caller: IssueKey) -> None:
    client = caller("free")
    statuses = [client.list_pets(limit=1).status_code for _ in range(PER_MINUTE["free"] + 1)]
    assert statuses == [200] * PER_MINUTE["free"] + [429]


@pytest.mark.parametrize(("plan", "per_minute"), PER_MINUTE.items())
def test_the_headers_show_the_limit_of_the_plan(
    caller: IssueKey, plan: str, per_minute: int
) -> None:
    headers = caller(plan).list_pets(limit=1).headers
    assert headers["X-RateLimit-Limit"] == str(per_minute)
    assert headers["X-RateLimit-Remaining"] == str(per_minute - 1)


@pytest.mark.parametrize(("plan", "per_day"), PER_DAY.items())
def test_a_plan_has_a_limit_of_requests_per_day(caller: IssueKey, plan: str, per_day: int) -> None:
    assert day_limit(caller(plan)) == per_day


def test_the_limits_of_enterprise_are_set_for_each_customer(caller: IssueKey) -> None:
    client = caller("enterprise", "--per-minute", "2", "--per-day", "7")
    assert day_limit(client) == 7
    statuses = [client.list_pets(limit=1).status_code for _ in range(3)]
    assert statuses == [200, 200, 429]
