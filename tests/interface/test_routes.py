"""Paths and methods, the URL in links, and requests from other origins."""

from itertools import product
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_type_hints

import httpx
import pytest

from petstore.http.messages import Refusal, Request
from petstore.interface.operation import Operation
from petstore.interface.operations import OPERATIONS
from support.cases import case
from support.error_body import assert_error
from support.service import Service, fields, http_request, running_service

pytestmark = pytest.mark.anyio


async def test_an_unknown_path_is_not_found(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"keys:admin", "webhooks:write"}))
    for path in (
        *("", "/", "//pets", "%2Fpets", "%2fpets", "/pets/", "/pets//1", "/pets/1/"),
        *("/pets/1/photos", "/pets%2F1", "/%70ets", "/Pets", "/pets;a=1", "/pet", "/petsx"),
        *("/usage/", "/usage/1", "/v1/pets", "/store", "/store/", "/store/orders/1/approve"),
        *("/keys/1/", "/keys//rotate", "/keys/1//rotate", "/keys/1/rotate/", "/keys/1/Rotate"),
        *("/webhooks/1/deliveries/1", "/webhooks/1/deliveries//retry", "/webhooks/1/1/1/1"),
        *("/webhooks//deliveries/1/retry", "/webhooks/1/deliveries/1/retry/"),
        *("/webhooks/1/deliveries/1/retry/1", "/%2e%2e/healthz", "/rotate", "//rotate"),
        *("/keys/1/rotate/now", "/keys/1/2/rotate", "/pets/1/rotate", "/keys/current"),
    ):
        with case(path):
            response = await service.request("GET", f"/v1{path}", key.token)
            assert_error(response, 404, "not_found")
            assert len(response.headers.get_list("X-RateLimit-Limit")) == 1
    long = await service.request("GET", f"/v1/{'x' * 5000}", key.token)
    assert len(assert_error(long, 404, "not_found")) < 300
    for key_id in (
        *("x", "1.0", "+1", "9223372036854775808", "%31", "1%2f", "history", "Current"),
        "%63urrent",
    ):
        with case(key_id):
            response = await service.request("POST", f"/v1/keys/{key_id}/rotate", key.token)
            assert_error(response, 404, "not_found")


async def test_a_405_lists_the_allowed_methods(service: Service) -> None:
    key = await service.issue(scopes=frozenset({"keys:admin"}))
    for method, path, allow in [
        ("PUT", "/v1/pets", "GET, HEAD, POST"),
        ("DELETE", "/v1/pets", "GET, HEAD, POST"),
        ("OPTIONS", "/v1/pets", "GET, HEAD, POST"),
        ("get", "/v1/pets", "GET, HEAD, POST"),
        ("POST", "/v1/pets/1", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/keys/1/rotate", "POST"),
        ("GET", "/v1/keys/current/rotate", "POST"),
        ("DELETE", "/v1/keys/x/rotate", "POST"),
        ("POST", "/v1/keys/1/usage", "GET, HEAD"),
        # A segment after a parameter is matched literally.
        ("POST", "/v1/keys/rotate", "DELETE, GET, HEAD, PATCH"),
        ("POST", "/v1/keys/1%2Frotate", "DELETE, GET, HEAD, PATCH"),
        ("GET", "/v1/webhooks/x/deliveries/1/retry", "POST"),
        ("POST", "/v1/usage", "GET, HEAD"),
        ("X" * 1000, "/v1/usage", "GET, HEAD"),
    ]:
        with case(method, path):
            request = service.client.build_request("GET", path)
            request.headers["Authorization"] = f"Bearer {key.token}"
            request.method = method  # as it is: a client may not write it in capitals
            response = await service.client.send(request)
            message = assert_error(response, 405, "method_not_allowed")
            assert response.headers.get_list("Allow") == [allow]
            assert len(message) < 100


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_a_handler_has_the_types_of_its_operation(operation: Operation) -> None:
    _, call, result = get_type_hints(operation.handler).values()
    body, query = get_args(call)
    if isinstance(body, TypeVar) or isinstance(get_args(result)[0], TypeVar):
        return  # a row that every resource has: mypy holds its handler to it
    if operation.is_batch:
        assert body == operation.body
    else:  # a patch that follows has no name in types
        assert issubclass(operation.body or NoneType, body)
    assert query is (operation.query or NoneType)
    if operation.success.content is not None:
        assert get_args(result) == (operation.success.content,)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.id)
def test_scope_caching_and_lapses_follow_from_the_resource(operation: Operation) -> None:
    right = "read" if operation.method == "GET" else "write"
    scopes = {
        **dict.fromkeys(("pets", "categories"), f"pets:{right}"),
        **dict.fromkeys(("keys", "people", "deprecations"), "keys:admin"),
        **dict.fromkeys(("events", "usage"), None),
        "store": f"orders:{right}",
        "webhooks": "webhooks:write",
        "imports": "pets:write",
        "current": None,  # the own key
    }
    _, resource, *rest = operation.path.split("/")
    assert operation.scope == scopes["current" if "current" in rest else resource]
    about_keys = ("deprecations", "events", "keys", "people", "usage", "webhooks")
    assert operation.no_store == (resource in about_keys)
    # A reservation that lapses is no sale.
    assert operation.shows_orders == (resource in ("pets", "store") and operation.id != "getSales")


# Links that a client can use as they stand


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


async def test_an_error_links_its_explanation(service: Service) -> None:
    for method, path, hosts, link in [
        ("GET", "/v1/pets", ["a.test"], "http://a.test/docs/errors#missing_api_key"),
        ("GET", "/nothing", ["a.test"], "http://a.test/docs/errors#not_found"),
        ("POST", "/healthz", ["a.test"], "http://a.test/docs/errors#method_not_allowed"),
        *(
            ("GET", "/v1/pets", hosts, "/docs/errors#invalid_request")
            for hosts in ([], ["a b"], ["a", "b"])
        ),
    ]:
        with case(path, hosts):
            sent = [(b"host", host.encode()) for host in hosts]
            response = await service.call(method, path.encode(), sent)
            assert dict(fields(response))[b"link"] == f'<{link}>; rel="help"'.encode()


# Cross-origin requests from browsers


SHOP = "https://shop.example"
# What a page sends itself, and what its tracing and error tracking add.
SENT = (
    "authorization,baggage,content-type,idempotency-key,if-match,newrelic,sentry-trace,traceparent,"
    "tracestate,x-datadog-origin,x-request-id,x-requested-with"
)
EXPOSED = {
    *("Link", "Location", "Retry-After", "X-RateLimit-Limit", "X-RateLimit-Remaining"),
    *("X-RateLimit-Reset", "RateLimit", "RateLimit-Policy", "X-Request-Id", "Deprecation"),
    *("Sunset", "WWW-Authenticate", "ETag", "Idempotent-Replayed", "X-Total-Count"),
}


async def preflight(service: Service, path: str, origin: str = SHOP) -> httpx.Response:
    headers = {
        "Origin": origin,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": SENT,
    }
    return await service.request("OPTIONS", path, headers=headers)


def says_nothing(response: httpx.Response) -> bool:
    return not any(name.startswith("access-control-") for name in response.headers)


async def test_only_a_preflight_from_an_allowed_origin_gets_cors_headers(database: Path) -> None:
    async with running_service(database) as service:  # which allows none by default
        key = await service.issue()
        assert_error(await preflight(service, "/v1/pets"), 401, "missing_api_key")
        for token, status in ((None, 401), (key.token, 200)):
            response = await service.request("GET", "/v1/pets", token, headers={"Origin": SHOP})
            assert response.status_code == status
            assert says_nothing(response)
    async with running_service(database, allowed_origin=(SHOP,)) as service:
        for origin in (
            *("https://other.example", "http://shop.example", "HTTPS://SHOP.EXAMPLE", "null", "*"),
            *("", f"{SHOP}:444", f"{SHOP}.evil.example", f"{SHOP}/"),
        ):
            with case(origin):
                response = await preflight(service, "/v1/pets", origin)
                assert_error(response, 401, "missing_api_key")
                assert says_nothing(response)
        headers = [("Origin", SHOP), ("Origin", "https://evil.example")]
        assert says_nothing(await service.request("GET", "/v1/pets", headers=headers))
        ordinary = {"Origin": SHOP}  # it does not ask for a method
        response = await service.request("OPTIONS", "/v1/pets", key.token, headers=ordinary)
        assert_error(response, 405, "method_not_allowed")


async def test_a_preflight_lists_the_allowed_methods_and_headers_and_counts_against_no_limit(
    database: Path,
) -> None:
    origins = ("https://x.example", SHOP)
    async with running_service(database, allowed_origin=origins, anonymous_per_minute=1) as service:
        for path, methods in [
            ("/v1/pets", "GET, HEAD, POST"),
            ("/v1/pets/1", "DELETE, GET, HEAD, PATCH"),
            ("/v1/usage", "GET, HEAD"),
            ("/v1/unknown", ""),
        ]:
            with case(path):
                response = await preflight(service, path)
                assert (response.status_code, response.content) == (204, b"")
                assert "Content-Length" not in response.headers
                assert response.headers["Access-Control-Allow-Methods"] == methods
                assert response.headers["Access-Control-Allow-Origin"] == SHOP
                assert response.headers["Vary"] == "Origin"
                assert response.headers["Access-Control-Allow-Headers"] == SENT
                assert "Access-Control-Allow-Credentials" not in response.headers
                assert response.headers["X-RateLimit-Remaining"] == "1"


@pytest.mark.parametrize(
    ("allowed", "origin"), [(SHOP, SHOP), ("*", "https://any.example"), ("*", "null")]
)
async def test_an_allowed_origin_can_read_every_response(
    database: Path, allowed: str, origin: str
) -> None:
    async with running_service(database, allowed_origin=(allowed,)) as service:
        key = await service.issue()
        for token, path, status, vary in [
            (key.token, "/v1/pets", 200, ["Authorization", "Origin"]),
            (None, "/v1/pets", 401, ["Authorization", "Origin"]),
            (key.token, "/v1/pets/7", 404, ["Authorization", "Origin"]),
            (None, "/v1/openapi.json", 200, ["Accept-Encoding", "Origin"]),
        ]:
            response = await service.request("GET", path, token, headers={"Origin": origin})
            assert response.status_code == status
            assert response.headers["Access-Control-Allow-Origin"] == origin
            assert response.headers.get_list("Vary") == vary
            exposed = response.headers["Access-Control-Expose-Headers"]
            assert set(exposed.split(", ")) == EXPOSED


# What tools, tracing and gateways add to a request, unasked.
ADDED = {
    "Accept": "text/html, */*; q=.2",
    "Accept-Encoding": "gzip,br",
    "Baggage": "sentry-trace_id=0",
    "Cache-Control": "no-cache",
    "Connection": "TE, close",
    "Expect": "100-continue",
    "Forwarded": "for=192.0.2.1",
    "If-Modified-Since": "Sun, 29 Nov 2020 00:00:00 GMT",
    "Range": "bytes=0-",
    "Sec-Fetch-Site": "cross-site",
    "TE": "deflate,gzip;q=0.3",
    "Traceparent": "00-bad",
    "Upgrade": "h2c",
    "X-Forwarded-Proto": "https",
    "X-Requested-With": "XMLHttpRequest",
}


PET = {"name": "Rex", "categoryId": 1}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}  # curl -d '' says so, too
# What is sent with them and without, and how the service responds.
REQUESTS: list[tuple[str, str, dict[str, Any], int, str]] = [
    ("GET", "/v1/pets", {}, 200, ""),
    ("HEAD", "/v1/pets", {}, 200, ""),
    ("POST", "/v1/pets", {"json": PET}, 201, ""),
    ("POST", "/v1/keys/1/unban", {"headers": FORM}, 204, ""),
    ("POST", "/v1/keys/3/rotate", {"headers": FORM}, 200, ""),
    ("POST", "/v1/pets", {"headers": FORM}, 400, "invalid_body"),
    ("POST", "/v1/pets", {"json": {}}, 400, "invalid_body"),
    ("GET", "/v1/pets?id=x", {}, 400, "invalid_parameter"),
    ("GET", "/v1/pets/77", {}, 404, "not_found"),
    ("PUT", "/v1/pets", {"json": PET}, 405, "method_not_allowed"),
    ("POST", "/v1/pets", {"content": bytes(70_000)}, 413, "content_too_large"),
    ("POST", "/v1/pets", {"headers": FORM, "content": b"a=b"}, 415, "unsupported_media_type"),
]


async def test_tools_may_add_what_they_add_and_see_each_refusal_as_what_it_is(
    database: Path,
) -> None:
    async with running_service(database, allowed_origin=(SHOP,)) as service:
        key = await service.issue(scopes=("pets:read", "pets:write", "keys:admin"))
        limited = await service.issue(per_minute=1)
        await service.issue(scopes=("pets:read",))
        await service.request("GET", "/v1/pets", limited.token)
        requests: list[Any] = [(key.token, *request) for request in REQUESTS]
        requests += [
            (None, "GET", "/v1/pets", {}, 401, "missing_api_key"),
            ("ps_live_x", "GET", "/v1/pets", {}, 401, "invalid_api_key"),
            (limited.token, "GET", "/v1/pets", {}, 429, "rate_limit_exceeded"),
        ]
        for added, request in product(({}, ADDED), requests):
            token, method, path, options, status, code = request
            headers = {"Origin": SHOP, **added, **options.get("headers", {})}
            with case(added, method, path, status):
                response = await service.request(
                    method, path, token, **options | {"headers": headers}
                )
                assert response.status_code == status
                assert response.headers["Access-Control-Allow-Origin"] == SHOP
                if code:
                    assert_error(response, status, code)
