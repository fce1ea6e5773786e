"""interface.md, "Behaviour at the limit"."""

import time

from support.client import Client, IssueKey


def test_a_request_that_exceeds_the_limit_gets_429_too_many_requests(caller: IssueKey) -> None:
    client = caller("enterprise", "--per-minute", "1")
    assert client.list_pets().status_code == 200
    refused = client.create_pet(name="Bella", categoryId=1)
    assert refused.status_code == 429
    assert refused.reason_phrase == "Too Many Requests"


def test_a_429_has_the_seconds_until_the_reset_in_retry_after(caller: IssueKey) -> None:
    client = caller("enterprise", "--per-minute", "1")
    client.list_pets()
    headers = client.list_pets().headers
    assert headers["X-RateLimit-Remaining"] == "0"
    wait = int(headers["Retry-After"])
    assert 1 <= wait <= 61
    assert time.time() + wait >= int(headers["X-RateLimit-Reset"]) - 1


def test_only_a_429_has_retry_after(client: Client) -> None:
    assert "Retry-After" not in client.list_pets().headers
    assert "Retry-After" not in client.list_pets(limit=0).headers
