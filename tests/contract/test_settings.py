"""interface.md, "Versioning" and "Behaviour at the limit", of services with other settings."""

from pathlib import Path

import pytest

from support.client import Client
from support.process import serving


@pytest.fixture(autouse=True)
def in_every_form() -> None:
    """These tests start services of their own, in one form."""


def test_staging_is_a_separate_environment_with_the_same_base_path(tmp_path: Path) -> None:
    with serving(tmp_path, "--environment", "staging") as staging:
        token = staging.issue("free", "--environment", "staging")
        with Client(staging.url, token) as client:
            assert client.list_pets().status_code == 200


def test_repeated_requests_after_a_429_ban_the_key_temporarily(tmp_path: Path) -> None:
    # By default the first second after a 429 is forgiven; not here, so the test need not wait.
    with serving(tmp_path, "--ban-grace-seconds", "0") as server:
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
