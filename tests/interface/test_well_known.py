"""What crawlers and security researchers find at the usual addresses."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from petstore.clock import utc
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

PUBLIC_URL = "https://api.example.com/shop"
CONTACTS = ("mailto:security@example.com", "https://example.com/report")
ROBOTS, SECURITY = "/robots.txt", "/.well-known/security.txt"


@pytest.fixture
async def named(database: Path) -> AsyncIterator[Service]:
    """A service whose operator has named its URL and contacts."""
    async with running_service(
        database, public_url=PUBLIC_URL, security_contact=CONTACTS
    ) as service:
        yield service


def contacts_of(response: httpx.Response) -> dict[str, list[str]]:
    """Return the fields of a security.txt."""
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    found: dict[str, list[str]] = {}
    for line in response.text.splitlines():
        name, _, value = line.partition(": ")
        found.setdefault(name, []).append(value)
    return found


async def test_crawlers_are_disallowed_from_the_interface_and_the_console(service: Service) -> None:
    response = await service.request("GET", ROBOTS)
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.text.splitlines() == [
        "User-agent: *",
        "Allow: /v1/openapi.json",
        "Disallow: /v1/",
        "Disallow: /console/",
    ]


async def test_without_a_contact_there_is_no_security_txt(service: Service) -> None:
    message = assert_error(await service.request("GET", SECURITY), 404, "not_found")
    assert "--security-contact" in message


async def test_security_txt_has_every_contact_and_its_own_url(named: Service) -> None:
    found = contacts_of(await named.request("GET", SECURITY))
    assert found["Contact"] == list(CONTACTS)
    assert found["Canonical"] == [f"{PUBLIC_URL}{SECURITY}"]


async def test_security_txt_does_not_name_a_url_from_the_host_header(database: Path) -> None:
    async with running_service(database, security_contact=CONTACTS) as service:
        assert "Canonical" not in contacts_of(await service.request("GET", SECURITY))


async def test_security_txt_expires_in_half_a_year(named: Service) -> None:
    for _ in range(2):
        (text,) = contacts_of(await named.request("GET", SECURITY))["Expires"]
        left = datetime.fromisoformat(text) - utc(named.clock())
        assert timedelta(days=179) < left <= timedelta(days=180)
        named.clock.advance(1000 * 86400)


@pytest.mark.parametrize("path", [ROBOTS, SECURITY])
async def test_any_cache_may_store_them_for_a_day(named: Service, path: str) -> None:
    response = await named.request("GET", path)
    assert response.headers["Cache-Control"] == "public, max-age=86400"
    assert_error(await named.request("POST", path), 405, "method_not_allowed")
