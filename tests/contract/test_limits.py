"""interface.md, "Rate limits": plans, headers and behaviour at the limit."""

import time

import httpx
import pytest

from support.client import RATE_LIMIT_HEADERS, Client, IssueKey


def day_limit(client: Client) -> int:
    limit: int = client.get("/usage").json()["day"]["limit"]
    return limit


@pytest.mark.parametrize(
    ("plan", "per_minute", "per_day"),
    [("free", 60, 1_000), ("pro", 300, 10_000), ("business", 1_000, 100_000)],
)
def test_a_plan_has_its_limits(caller: IssueKey, plan: str, per_minute: int, per_day: int) -> None:
    client = caller(plan)
    headers = client.list_pets(limit=1).headers
    assert headers["X-RateLimit-Limit"] == str(per_minute)
    assert headers["X-RateLimit-Remaining"] == str(per_minute - 1)
    assert day_limit(client) == per_day


def test_a_plan_admits_exactly_its_requests_per_minute(caller: IssueKey) -> None:
    client = caller("free")
    began = time.time()
    responses = [client.list_pets(limit=1) for _ in range(61)]
    assert [response.status_code for response in responses] == [200] * 60 + [429]
    remaining = [int(response.headers["X-RateLimit-Remaining"]) for response in responses]
    assert remaining == [*range(59, -1, -1), 0]
    (reset,) = {int(response.headers["X-RateLimit-Reset"]) for response in responses}
    assert began + 59 <= reset <= time.time() + 61


def test_every_response_carries_each_header_exactly_once(response: httpx.Response) -> None:
    sent = [field.lower() for field, _ in response.headers.raw]
    for name in RATE_LIMIT_HEADERS:
        assert sent.count(name.lower().encode()) == 1
        assert response.headers[name].isascii()
        assert response.headers[name].isdigit()
    assert sent.count(b"x-request-id") == 1
    assert max(sent.count(b"ratelimit"), sent.count(b"ratelimit-policy")) <= 1
    limit, remaining = (int(response.headers[name]) for name in RATE_LIMIT_HEADERS[:2])
    assert 0 <= remaining <= limit
    assert ("Retry-After" in response.headers) is (response.status_code == 429)


def test_a_429_has_the_seconds_until_the_reset_in_retry_after(caller: IssueKey) -> None:
    client = caller("enterprise", "--per-minute", "1")
    assert client.list_pets().status_code == 200
    refused = client.create_pet(name="Bella", categoryId=1)
    assert (refused.status_code, refused.reason_phrase) == (429, "Too Many Requests")
    assert refused.headers["X-RateLimit-Remaining"] == "0"
    wait = int(refused.headers["Retry-After"])
    assert 1 <= wait <= 61
    assert time.time() + wait >= int(refused.headers["X-RateLimit-Reset"]) - 1
