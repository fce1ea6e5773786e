"""The files of the reference page: all from this service, for anybody."""

import re

import pytest

from support.service import SERVICE_URL, Service

pytestmark = pytest.mark.anyio

FILES = {
    "/docs": "text/html; charset=utf-8",
    "/docs/reference.js": "text/javascript; charset=utf-8",
    "/docs/swagger-ui-bundle.js": "text/javascript; charset=utf-8",
    "/docs/swagger-ui.css": "text/css; charset=utf-8",
}


@pytest.mark.parametrize("path", ["/docs/index.html", "/docs/swagger-ui.js"])
async def test_there_are_no_other_files(service: Service, path: str) -> None:
    assert (await service.client.get(path)).status_code == 404


@pytest.mark.parametrize("path", ["/", "/docs/"])
async def test_addresses_near_the_reference_lead_to_it(service: Service, path: str) -> None:
    response = await service.client.get(path)
    assert response.status_code == 307
    assert response.headers["location"] == f"{SERVICE_URL}/docs"


@pytest.mark.parametrize(("path", "media_type"), FILES.items())
async def test_a_file_is_served_to_anybody_with_its_media_type(
    service: Service, path: str, media_type: str
) -> None:
    response = await service.client.get(path)
    assert response.status_code == 200
    assert response.headers["content-type"] == media_type
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.text


@pytest.mark.parametrize("path", FILES)
async def test_head_of_a_file_has_the_headers_of_get(service: Service, path: str) -> None:
    head, got = await service.client.head(path), await service.client.get(path)
    assert head.content == b""
    for response in (head, got):
        del response.headers["x-request-id"]
    assert head.headers == got.headers


async def test_the_page_names_no_other_host(service: Service) -> None:
    page = (await service.client.get("/docs")).text
    assert "//" not in page
    assert re.findall(r'src="([^"]*)"', page) == [
        "/docs/swagger-ui-bundle.js",
        "/docs/reference.js",
    ]


async def test_the_page_may_load_nothing_but_what_this_service_has(service: Service) -> None:
    policy = (await service.client.get("/docs")).headers["content-security-policy"]
    directives = {words[0]: words[1:] for words in map(str.split, policy.split(";"))}
    assert directives["default-src"] == ["'none'"]
    assert directives["script-src"] == ["'self'"]
    assert directives["connect-src"] == ["'self'"]
