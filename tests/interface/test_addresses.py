"""Links that a client can use as they stand, at the URL by which it reaches the service."""

from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from petstore.http.messages import Refusal, Request
from support.error_body import assert_error
from support.service import SERVICE_URL, Service, fields, http_request, running_service

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": 1}
HOSTS = ["petstore.example:8000", "PetStore.Example", "[::1]:8000", "127.0.0.1"]
PUBLIC_URL = "https://api.example.com/shop"


@pytest.fixture
async def token(service: Service) -> str:
    """The token of a key without limits, in a store with two pets."""
    token = (await service.issue()).token
    for _ in range(2):
        await service.request("POST", "/v1/pets", token, json=BELLA)
    return token


@pytest.fixture
async def public(database: Path) -> AsyncIterator[Service]:
    """A service whose operator has named its URL."""
    async with running_service(database, public_url=f"{PUBLIC_URL}/") as service:
        yield service


def next_url(response: httpx.Response) -> str:
    return response.links["next"]["url"]


def help_url(response: httpx.Response) -> str:
    return response.links["help"]["url"]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_the_next_link_has_the_host_of_the_request(
    service: Service, token: str, host: str, method: str
) -> None:
    for _ in range(2):  # the second time from memory
        response = await service.request(method, "/v1/pets?limit=1", token, headers={"Host": host})
        assert next_url(response) == f"http://{host}/v1/pets?limit=1&cursor=AAAAAAAAAAE"


async def test_a_replay_has_the_location_of_the_first_response(
    service: Service, token: str
) -> None:
    for host in HOSTS:
        headers = {"Host": host, "Idempotency-Key": "a"}
        response = await service.request("POST", "/v1/pets", token, json=BELLA, headers=headers)
        assert response.headers["Location"] == f"http://{HOSTS[0]}/v1/pets/3"


async def test_links_start_with_the_public_url_whatever_the_host(public: Service) -> None:
    token = (await public.issue()).token
    for number in (1, 2):
        created = await public.request("POST", "/v1/pets", token, json=BELLA)
        assert created.headers["Location"] == f"{PUBLIC_URL}/v1/pets/{number}"
    page = await public.request("GET", "/v1/pets?limit=1", token, headers={"Host": "10.0.0.7"})
    assert next_url(page) == f"{PUBLIC_URL}/v1/pets?limit=1&cursor=AAAAAAAAAAE"
    one = await public.request("GET", "/v1/pets/1", token)
    assert one.links["successor-version"]["url"] == f"{PUBLIC_URL}/v1/pets"
    assert one.links["deprecation"]["url"].startswith(f"{PUBLIC_URL}/docs")
    lost = await public.request("GET", "/v1/nothing", token)
    assert help_url(lost) == f"{PUBLIC_URL}/docs/errors#not_found"


async def test_without_a_host_links_stay_relative(service: Service, token: str) -> None:
    authorization = f"Bearer {token}".encode()
    request = http_request("GET", b"/v1/pets?limit=1", [(b"authorization", authorization)])
    request.version = "1.0"
    response = await service.app(request, _nothing)
    link = dict(fields(response))[b"link"]
    assert link == b'</v1/pets?limit=1&cursor=AAAAAAAAAAE>; rel="next"'


# Errors


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [
        ("GET", "/v1/pets", 401, "missing_api_key"),
        ("GET", "/nothing", 404, "not_found"),
        ("POST", "/healthz", 405, "method_not_allowed"),
    ],
)
async def test_an_error_links_its_explanation(
    service: Service, method: str, path: str, status: int, code: str
) -> None:
    response = await service.request(method, path)
    assert_error(response, status, code)
    assert help_url(response) == f"{SERVICE_URL}/docs/errors#{code}"


@pytest.mark.parametrize("hosts", [[], ["a b"], ["a", "b"]])
async def test_an_error_without_a_valid_host_has_a_relative_link(
    service: Service, hosts: list[str]
) -> None:
    sent = [(b"host", host.encode()) for host in hosts]
    response = await service.call("GET", b"/v1/pets", sent)
    assert dict(fields(response))[b"link"] == b'</docs/errors#invalid_request>; rel="help"'


async def test_the_error_for_a_malformed_message_has_a_relative_link(service: Service) -> None:
    request = Request("", "", b"", "192.0.2.1", {}, refusal=Refusal(431, "the head: too large"))
    response = await service.app(request, _nothing)
    link = dict(fields(response))[b"link"]
    assert link == b'</docs/errors#header_fields_too_large>; rel="help"'


async def _nothing() -> bytes:
    return b""
