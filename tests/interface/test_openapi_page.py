"""The page that serves the OpenAPI document: its address, its versions and its compression."""

import gzip
from pathlib import Path
from typing import Any

import httpx
import pytest

from petstore.http.messages import Response
from petstore.interface.openapi.document import DocumentPage
from petstore.interface.operations import OPERATIONS
from support.bare_app import http_request
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

PATH = "/v1/openapi.json"


async def get(service: Service, method: str = "GET", **headers: str) -> httpx.Response:
    """Ask for the document, as it is unless ``headers`` say something else."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return await service.client.request(
        method, PATH, headers={"Accept-Encoding": "identity"} | named
    )


def page_of_any_host() -> DocumentPage:
    return DocumentPage(OPERATIONS, lambda request: f"http://{request.fields[b'host'].decode()}")


async def ask(page: DocumentPage, host: str) -> Response:
    fields = [(b"host", host.encode("ascii")), (b"accept-encoding", b"gzip")]
    return await page(http_request("GET", PATH.encode("ascii"), fields))


async def test_any_cache_may_store_the_document_and_must_revalidate_it(service: Service) -> None:
    first = await get(service)
    assert first.headers["Cache-Control"] == "public, max-age=300"
    assert first.headers["Vary"] == "Accept-Encoding"
    assert not first.headers["ETag"].startswith("W/")
    again = await get(service, If_None_Match=first.headers["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    for name in ("ETag", "Cache-Control", "Vary"):
        assert again.headers[name] == first.headers[name]


async def test_the_document_is_compressed_for_a_client_that_accepts_it(service: Service) -> None:
    whole, compressed = await get(service), await get(service, Accept_Encoding="gzip, br")
    assert "Content-Encoding" not in whole.headers
    assert compressed.headers["Content-Encoding"] == "gzip"
    assert int(compressed.headers["Content-Length"]) < len(whole.content) / 8
    assert compressed.json() == whole.json()


async def test_the_document_names_the_host_of_the_request(service: Service) -> None:
    for host in ("petstore.test", "192.0.2.7:8000", "[2001:db8::7]"):
        described = (await get(service, Host=host)).json()
        assert described["servers"][0]["url"] == f"http://{host}/v1"
        assert described["externalDocs"]["url"] == f"http://{host}/docs/"


async def test_the_document_names_the_other_environment_if_the_operator_does(
    database: Path,
) -> None:
    settings: dict[str, Any] = {"other_environment_url": "https://shop.example/"}
    async with running_service(database, environment="staging", **settings) as service:
        servers = (await get(service)).json()["servers"]
    assert [(each["url"], each["description"].partition(":")[0]) for each in servers] == [
        ("http://petstore.test/v1", "staging"),
        ("https://shop.example/v1", "production"),
    ]


async def test_the_document_is_compressed_and_the_same_in_every_process_whatever_the_host() -> None:
    page, other = page_of_any_host(), page_of_any_host()
    for host in [*(f"{number}.test" for number in range(20)), "", 250 * "a"]:
        response = await ask(page, host)
        assert response == await ask(other, host)
        assert b"content-encoding: gzip" in response.headers
        whole = gzip.decompress(response.body)
        assert f'"url":"http://{host}/v1"'.encode() in whole
        assert len(response.body) < len(whole) / 8
