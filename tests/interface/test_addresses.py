"""Links that a client can use as they stand, at the URL by which it reaches the service."""

from itertools import product
from pathlib import Path

import pytest

from petstore.http.messages import Refusal, Request
from support.cases import case
from support.service import Service, fields, http_request, running_service

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


async def nothing() -> bytes:
    return b""


async def test_links_have_the_host_of_the_request_and_of_the_first_one_in_a_replay(
    service: Service, token: str
) -> None:
    for host, method in product(HOSTS, ("GET", "HEAD", "GET")):  # the last from memory
        with case(host, method):
            headers = {"Host": host}
            page = await service.request(method, "/v1/pets?limit=1", token, headers=headers)
            expected = f"http://{host}/v1/pets?limit=1&cursor=AAAAAAAAAAE"
            assert page.links["next"]["url"] == expected
    for host in HOSTS:
        headers = {"Host": host, "Idempotency-Key": "a"}
        created = await service.request("POST", "/v1/pets", token, json=BELLA, headers=headers)
        assert created.headers["Location"] == f"http://{HOSTS[0]}/v1/pets/3"


async def test_links_start_with_the_public_url_whatever_the_host(database: Path) -> None:
    async with running_service(database, public_url=f"{PUBLIC_URL}/") as service:
        token = (await service.issue()).token
        for number in (1, 2):
            created = await service.request("POST", "/v1/pets", token, json=BELLA)
            assert created.headers["Location"] == f"{PUBLIC_URL}/v1/pets/{number}"
        headers = {"Host": "10.0.0.7"}
        page = await service.request("GET", "/v1/pets?limit=1", token, headers=headers)
        one = await service.request("GET", "/v1/pets/1", token)
        lost = await service.request("GET", "/v1/nothing", token)
    next_page = f"{PUBLIC_URL}/v1/pets?limit=1&cursor=AAAAAAAAAAE"
    assert page.links["next"]["url"] == next_page
    assert one.links["successor-version"]["url"] == f"{PUBLIC_URL}/v1/pets"
    assert one.links["deprecation"]["url"].startswith(f"{PUBLIC_URL}/docs")
    assert lost.links["help"]["url"] == f"{PUBLIC_URL}/docs/errors#not_found"


async def test_without_a_host_links_stay_relative(service: Service, token: str) -> None:
    authorization = f"Bearer {token}".encode()
    request = http_request("GET", b"/v1/pets?limit=1", [(b"authorization", authorization)])
    request.version = "1.0"
    link = dict(fields(await service.app(request, nothing)))[b"link"]
    assert link == b'</v1/pets?limit=1&cursor=AAAAAAAAAAE>; rel="next"'
    malformed = Request("", "", b"", "192.0.2.1", {}, refusal=Refusal(431, "the head: too large"))
    link = dict(fields(await service.app(malformed, nothing)))[b"link"]
    assert link == b'</docs/errors#header_fields_too_large>; rel="help"'


@pytest.mark.parametrize(
    ("method", "path", "hosts", "link"),
    [
        ("GET", "/v1/pets", ["a.test"], "http://a.test/docs/errors#missing_api_key"),
        ("GET", "/nothing", ["a.test"], "http://a.test/docs/errors#not_found"),
        ("POST", "/healthz", ["a.test"], "http://a.test/docs/errors#method_not_allowed"),
        *(
            ("GET", "/v1/pets", hosts, "/docs/errors#invalid_request")
            for hosts in ([], ["a b"], ["a", "b"])
        ),
    ],
)
async def test_an_error_links_its_explanation(
    service: Service, method: str, path: str, hosts: list[str], link: str
) -> None:
    sent = [(b"host", host.encode()) for host in hosts]
    response = await service.call(method, path.encode(), sent)
    assert dict(fields(response))[b"link"] == f'<{link}>; rel="help"'.encode()
