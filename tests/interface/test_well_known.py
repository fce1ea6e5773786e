"""What crawlers and security researchers find at the usual addresses."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.clock import utc
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

PUBLIC_URL = "https://api.example.com/shop"
CONTACTS = ("mailto:security@example.com", "https://example.com/report")
ROBOTS, SECURITY = "/robots.txt", "/.well-known/security.txt"


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


async def test_security_txt_does_not_name_a_url_from_the_host_header(database: Path) -> None:
    async with running_service(database, security_contact=CONTACTS) as service:
        assert "Canonical" not in contacts_of(await service.request("GET", SECURITY))


async def test_security_txt_has_every_contact_and_its_own_url_and_expires_in_half_a_year(
    database: Path,
) -> None:
    named: dict[str, Any] = {"public_url": PUBLIC_URL, "security_contact": CONTACTS}
    async with running_service(database, **named) as service:
        for _ in range(2):
            found = contacts_of(await service.request("GET", SECURITY))
            assert found["Contact"] == list(CONTACTS)
            assert found["Canonical"] == [f"{PUBLIC_URL}{SECURITY}"]
            left = datetime.fromisoformat(found["Expires"][0]) - utc(service.clock())
            assert timedelta(days=179) < left <= timedelta(days=180)
            service.clock.advance(1000 * 86400)
        for path in (ROBOTS, SECURITY):
            response = await service.request("GET", path)
            assert response.headers["Cache-Control"] == "public, max-age=86400"
            assert_error(await service.request("POST", path), 405, "method_not_allowed")
