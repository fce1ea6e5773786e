"""Cross-origin requests from browsers."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from support.cases import case
from support.error_body import assert_error
from support.service import Service, running_service

pytestmark = pytest.mark.anyio

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


async def test_by_default_no_origin_is_allowed(service: Service) -> None:
    key = await service.issue()
    response = await preflight(service, "/v1/pets")
    assert_error(response, 401, "missing_api_key")
    assert says_nothing(response)
    response = await service.request("GET", "/v1/pets", key.token, headers={"Origin": SHOP})
    assert response.status_code == 200
    assert says_nothing(response)


async def test_only_a_preflight_from_an_allowed_origin_gets_cors_headers(database: Path) -> None:
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
        key = await service.issue()
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
                assert ("Accept-Patch" in response.headers) is ("PATCH" in methods)
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


# What a tool adds to its requests, unasked.
TOOLS = {
    "PowerShell": {"Expect": "100-continue", "User-Agent": "Mozilla/5.0 WindowsPowerShell/5.1"},
    "wget": {"Accept": "*/*", "Accept-Encoding": "identity", "Connection": "Keep-Alive"},
    "curl": {"Accept": "*/*", "User-Agent": "curl/8.5.0"},
    "HTTPie": {"Accept": "application/json, */*;q=0.5", "Accept-Encoding": "gzip, deflate, br"},
    "Postman": {"Cache-Control": "no-cache", "Postman-Token": "1b4e28ba"},
    "Node's fetch": {"Accept-Language": "*", "Sec-Fetch-Mode": "cors", "User-Agent": "node"},
    "Deno's fetch": {"Accept-Language": "*", "Accept-Encoding": "gzip,br"},
    "Chrome": {
        "Sec-CH-UA": '"Chromium";v="130"',
        "Sec-Fetch-Site": "cross-site",
        "Priority": "u=1",
    },
    "jQuery": {"X-Requested-With": "XMLHttpRequest", "Pragma": "no-cache"},
    "axios": {"Accept": "application/json, text/plain, */*", "X-XSRF-TOKEN": "x"},
    "Sentry": {"Sentry-Trace": "0-1-1", "Baggage": "sentry-trace_id=0"},
    "OpenTelemetry": {"Traceparent": "00-bad", "Tracestate": "a=b", "B3": "0"},
    "Datadog": {"X-Datadog-Trace-Id": "1", "X-Datadog-Sampling-Priority": "1"},
    "New Relic": {"Newrelic": "eyJ2IjpbMCwxXX0="},
    "Scrapy": {"Accept": "text/html,application/xml;q=0.9,*/*;q=0.8", "Accept-Language": "en"},
    "Java": {"Accept": "text/html, image/gif, *; q=.2, */*; q=.2", "Upgrade": "h2c"},
    "AWS gateway": {"X-Amzn-Trace-Id": "Root=1-67", "X-Forwarded-Proto": "https"},
    "Kong": {"X-Kong-Request-Id": "1", "Via": "1.1 kong", "Forwarded": "for=192.0.2.1"},
    "Cloudflare": {"CF-Ray": "8", "CF-Connecting-IP": "192.0.2.1", "CDN-Loop": "cloudflare"},
    "an agent": {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "1"},
    "Perl's LWP": {"TE": "deflate,gzip;q=0.3", "Connection": "TE, close"},
    "a script": {"Range": "bytes=0-", "If-Modified-Since": "Sun, 29 Nov 2020 00:00:00 GMT"},
}


PET = {"name": "Rex", "categoryId": 1}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}  # curl -d '' says so, too
# What is sent with each tool, and how the service responds.
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
        for tool, added in TOOLS.items():
            for token, method, path, options, status, code in requests:
                headers = {"Origin": SHOP, **added, **options.get("headers", {})}
                sent = options | {"headers": headers}
                with case(tool, method, path, status):
                    response = await service.request(method, path, token, **sent)
                    assert response.status_code == status
                    assert response.headers["Access-Control-Allow-Origin"] == SHOP
                    if code:
                        assert_error(response, status, code)
