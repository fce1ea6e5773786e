"""The checks of every request, their order, and the headers of every response.

The checks of a change are in test_openapi.py, for every operation.
"""

import logging
import re
from itertools import product
from pathlib import Path

import apsw
import httpx
import pytest

from petstore.http.messages import Request
from petstore.keys.model import Scope
from petstore.pets.model import NewPet
from support.cases import case
from support.changes import create_pets
from support.error_body import assert_error
from support.service import SERVICE_URL, Service, running_service

pytestmark = pytest.mark.anyio

BELLA = {"name": "Bella", "categoryId": 1}
UNKNOWN_TOKEN = "ps_live_0000000000000000000000000000000000JNFrbC"


# The order of checks: each test breaks two rules and shows which is judged first.


async def test_limits_key_path_and_method_scope_and_resource_are_checked_in_this_order(
    database: Path,
) -> None:
    async with running_service(database, anonymous_per_minute=1) as service:
        for method, path, status, code in [
            ("GET", "/v1/unknown", 404, "not_found"),
            ("GET", "/v1", 404, "not_found"),
            ("PUT", "/v1/pets", 405, "method_not_allowed"),
            ("GET", "/v1/pets/7", 403, "missing_scope"),
            ("GET", "/v1/pets/x", 403, "missing_scope"),
            ("GET", "/v1/pets?limit=0", 403, "missing_scope"),
        ]:
            with case(method, path):
                key = await service.issue(per_minute=1, scopes=frozenset({"pets:write"}))
                for token, refused, reason in [
                    (key.token, status, code),
                    (key.token, 429, "rate_limit_exceeded"),
                    (UNKNOWN_TOKEN, 401, "invalid_api_key"),
                    (None, 429, "rate_limit_exceeded"),
                ]:
                    assert_error(await service.request(method, path, token), refused, reason)
            service.clock.advance(60)


# The HTTP message itself


VALID_HOSTS = [
    *("petstore", "petstore.example:8000", "PetStore.Example.", "127.0.0.1:80", "x:"),
    *("pet_store-1", "[::1]", "[::1]:8000", "[::ffff:10.0.0.1]", "xn--bcher-kva.example"),
    *("a%20b", "a" * 261),
]
INVALID_HOSTS = [
    *("", "http://x", "x/y", "x@y", "a,b", "x:abc", "x:80:80", "x:-1", ":80", ":", "::1"),
    *("[::1", "::1]", "[]", "[x]", "[::1]x", "x?y", "x#y", "x\\y", "ä", "x\x7f", "%", "%2", "a%zz"),
    *('"x"', "<x>", "a b", "a, a", "a" * 262, "x:000000", "a" * 60_000 + "@", "%41" * 20_000),
]
PATHS = ["/v1/pets", "/v1/openapi.json", "/healthz", "/docs", "/nothing"]


async def test_a_host_is_a_name_or_an_address_with_an_optional_port_and_only_http_1_0_needs_none(
    service: Service,
) -> None:
    async def nothing() -> bytes:
        return b""

    authorization = f"Bearer {(await service.issue()).token}".encode()
    for path, (version, host, is_taken) in product(
        PATHS,
        [
            *(("1.1", host, True) for host in VALID_HOSTS),
            *(("1.1", host, False) for host in INVALID_HOSTS),
            *(("1.1", None, False), ("1.0", None, True), ("1.0", "x@y", False)),
        ],
    ):
        with case(path, version, host):
            fields = {b"authorization": authorization}
            fields |= {} if host is None else {b"host": host.encode("latin-1")}
            request = Request("GET", path, b"", "127.0.0.1", fields, version=version)
            response = await service.app(request, nothing)
            is_refused = response.status == 400 and b'"invalid_request"' in response.body
            assert is_refused is not is_taken


# The identifier of a request


async def test_only_a_valid_request_id_is_returned(service: Service) -> None:
    for path, given in product(("/v1/pets", "/healthz", "/nothing"), ("a", "A-z_0.9", "x" * 64)):
        with case(path, given):
            response = await service.request("GET", path, headers={"X-Request-Id": given})
            assert response.headers.get_list("X-Request-Id") == [given]
    for given in ("", "x" * 65, "a b", "a/b", 'a"b', "a\tb", "é", "a\u2028"):
        with case(given):
            headers = {b"X-Request-Id": given.encode()}
            response = await service.request("GET", "/v1/pets", headers=headers)
            (fresh,) = response.headers.get_list("X-Request-Id")
            assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", fresh)
            assert fresh != given


# What every response carries


async def test_head_responds_as_get_without_the_body(service: Service) -> None:
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json=BELLA)
    as_it_is = {"Accept-Encoding": "identity"}
    for path in (
        *("/v1/pets", "/v1/pets/1", "/v1/pets/9", "/v1/usage", "/v1/openapi.json", "/healthz"),
    ):
        with case(path):
            got = await service.request("GET", path, key.token, headers=as_it_is)
            headed = await service.request("HEAD", path, key.token, headers=as_it_is)
            assert (headed.status_code, headed.content) == (got.status_code, b"")
            assert headed.headers["Content-Length"] == str(len(got.content))
            assert headed.headers["Content-Type"] == got.headers["Content-Type"]


# Caches: what an operation says to them is tested in test_openapi.py


def caching(response: httpx.Response) -> tuple[list[str], list[str]]:
    """Return the headers of a response for caches."""
    headers = response.headers
    return headers.get_list("Cache-Control"), headers.get_list("Vary")


PRIVATE = (["private, no-cache"], ["Authorization"])


async def test_no_shared_cache_stores_a_404_a_405_or_a_304(service: Service) -> None:
    key = await service.issue()
    await service.request("POST", "/v1/pets", key.token, json=BELLA)
    for method, path, status in [
        ("GET", "/v1", 404),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v1%2Fpets", 404),
        ("PUT", "/v1/pets", 405),
        ("GET", "/v1/pets/7", 404),
        ("OPTIONS", "/v1/pets", 405),
        ("GET", "/v1/pets", 304),
        ("GET", "/v1/pets/1", 304),
    ]:
        with case(method, path):
            headers = {"If-None-Match": "*"}
            response = await service.request(method, path, key.token, headers=headers)
            assert (response.status_code, caching(response)) == (status, PRIVATE)


async def test_pages_without_a_key_are_read_only_and_no_cache_stores_their_errors(
    service: Service,
) -> None:
    for path, method in product(
        ("/healthz", "/readyz", "/docs", "/v1/openapi.json"), ("POST", "OPTIONS", "DELETE")
    ):
        with case(method, path):
            response = await service.request(method, path)
            assert_error(response, 405, "method_not_allowed")
            assert response.headers.get_list("Allow") == ["GET, HEAD"]
            assert caching(response) == (["no-store"], [])
    for path in ("/nothing", "/v2/pets", "//v1/pets", "/v1x", "/pets"):
        with case(path):
            response = await service.client.get(f"http://petstore.test{path}")
            assert_error(response, 404, "not_found")
            # A missing page is JSON, a page or Markdown.
            assert caching(response) == (["no-store"], ["Accept"])
            assert "X-RateLimit-Limit" not in response.headers
    for method, path in (("GET", "/healthz"), ("HEAD", "/readyz")):
        assert caching(await service.request(method, path)) == (["no-store"], [])


# Faults of the service itself


@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_an_internal_error_reveals_nothing_and_leaves_one_traceback_in_the_log(
    service: Service, database: Path, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    key = await service.issue()
    with apsw.Connection(str(database)) as connection:
        connection.execute("DROP TABLE pets")
    response = await service.request(method, "/v1/pets", key.token, json=BELLA)
    assert "pets" not in assert_error(response, 500, "internal_error")
    assert "Traceback" not in response.text
    assert response.headers.get_list("X-RateLimit-Limit") == ["2147483647"]
    # Chores miss the table, too.
    (record,) = (each for each in caplog.records if each.name == "petstore.interface.application")
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert response.headers["X-Request-Id"] in record.getMessage()


# How getPet says that it is going away, and that it is gone


SUNSET = 1_922_659_200_000  # 2030-12-05T00:00:00Z


async def test_every_response_says_that_the_operation_ends_and_from_the_sunset_on_it_is_gone(
    service: Service,
) -> None:
    await service.store.write(create_pets([NewPet("Bella", 1)]))
    both: tuple[Scope, ...] = ("pets:read", "pets:write")
    reader, writer = [(await service.issue(scopes=frozenset({right}))).token for right in both]
    everybody = [(path, None, 401) for path in ("/v1/pets/7", "/v1/pets/x", "/v1/pets/1")]
    before = [
        *(*everybody, ("/v1/pets/1", writer, 403), ("/v1/pets/7", reader, 404)),
        *(("/v1/pets/x", reader, 404), ("/v1/pets/1", reader, 200)),
    ]
    gone = [(path, reader, 410) for path, *_ in everybody]
    for now, cases in (
        *((service.clock(), before), (SUNSET - 1, before), (SUNSET, gone), (SUNSET * 2, gone)),
    ):
        service.clock.now = now
        for (path, token, status), method in product(cases, ("GET", "HEAD")):
            with case(now, path, method, status):
                response = await service.request(method, path, token)
                assert response.status_code == status
                if (method, status) == ("GET", 410):
                    assert "/v1/pets" in assert_error(response, 410, "gone")
                assert response.headers.get_list("Sunset") == ["Thu, 05 Dec 2030 00:00:00 GMT"]
                (deprecation,) = response.headers.get_list("Deprecation")
                assert re.fullmatch(r"@[0-9]+", deprecation)
                assert int(deprecation[1:]) <= now // 1000
                links = {name: link["url"] for name, link in response.links.items()}
                assert links["deprecation"] == f"{SERVICE_URL}/docs/operations/getPet"
                assert links["successor-version"] == f"{SERVICE_URL}/v1/pets"
