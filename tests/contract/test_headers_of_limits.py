"""interface.md, "Rate limit headers"."""

import time

import httpx

from support.client import RATE_LIMIT_HEADERS, IssueKey


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


def test_each_request_decreases_remaining_by_one(caller: IssueKey) -> None:
    client = caller("free")
    remaining = [int(client.list_pets(limit=1).headers["X-RateLimit-Remaining"]) for _ in range(5)]
    assert remaining == [59, 58, 57, 56, 55]


def test_the_reset_is_a_unix_timestamp_within_the_current_minute(caller: IssueKey) -> None:
    before = time.time()
    reset = int(caller("free").list_pets(limit=1).headers["X-RateLimit-Reset"])
    assert before + 59 <= reset <= time.time() + 61


def test_the_reset_stays_the_same_for_the_whole_window(caller: IssueKey) -> None:
    client = caller("free")
    assert len({client.list_pets().headers["X-RateLimit-Reset"] for _ in range(5)}) == 1
