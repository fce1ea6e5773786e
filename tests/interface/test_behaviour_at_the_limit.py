"""interface.md, "Behaviour at the limit"."""

import time
from pathlib import Path

import pytest

from support.client import Client, IssueKey
from support.process import ServerProcess
from support.service import Service


def test_a_request_that_exceeds_the_limit_gets_429_too_many_requests(
    caller: IssueKey,
) -> None:
    client = caller("enterprise", "--per-minute", "1")
    assert client.list_pets().status_code == 200
    refused = client.create_pet(name="Bella", categoryId=1)
    assert refused.status_code == 429
    assert refused.reason_phrase == "Too Many Requests"


def test_a_429_tells_the_seconds_to_wait_until_the_reset(caller: IssueKey) -> None:
    client = caller("enterprise", "--per-minute", "1")
    client.list_pets()
    headers = client.list_pets().headers
    assert headers["X-RateLimit-Remaining"] == "0"
    wait = int(headers["Retry-After"])
    assert 1 <= wait <= 61
    assert time.time() + wait >= int(headers["X-RateLimit-Reset"]) - 1


def test_only_a_429_tells_how_long_to_wait(client: Client) -> None:
    assert "Retry-After" not in client.list_pets().headers
    assert "Retry-After" not in client.list_pets(limit=0).headers


@pytest.mark.anyio
async def test_a_client_that_waits_for_the_indicated_time_is_admitted(service: Service) -> None:
    token = (await service.issue("enterprise", per_minute=1)).token
    await service.request("GET", "/v1/pets", token)
    service.clock.advance(20)
    refused = await service.request("GET", "/v1/pets", token)
    assert refused.status_code == 429
    service.clock.advance(int(refused.headers["Retry-After"]))
    assert (await service.request("GET", "/v1/pets", token)).status_code == 200


def test_repeated_requests_after_a_429_lead_to_a_temporary_ban_of_the_key(tmp_path: Path) -> None:
    # By default the first second after a 429 is forgiven; not here, so the test need not wait.
    server = ServerProcess(tmp_path, "--ban-grace-seconds", "0")
    try:
        server.wait_until_ready()
        with Client(server.url, server.issue("free")) as client:
            responses = [client.list_pets(limit=1) for _ in range(120)]
        codes = [response.json()["code"] for response in responses[60:]]
        assert codes[0] == "rate_limit_exceeded"
        assert codes[-1] == "api_key_banned"
        assert {response.status_code for response in responses[60:]} == {429}
        # The ban ends after five minutes; both ends of that time are rounded up to a second.
        assert 299 <= int(responses[-1].headers["Retry-After"]) <= 301
        with Client(server.url, server.issue("free")) as other:
            assert other.list_pets().status_code == 200
    finally:
        server.stop()
