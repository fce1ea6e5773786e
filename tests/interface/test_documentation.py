"""The pages that need no key: the docs, health checks, and what is at the usual addresses."""

import asyncio
import gzip
from pathlib import Path

import pytest

from petstore.databases.sqlite import SqliteStore
from petstore.errors import NotFound
from petstore.http.messages import Request, Response
from petstore.interface.documentation import MISSING, Documentation, HealthPages
from support.cases import case
from support.error_body import assert_error
from support.service import Service, http_request, running_service
from support.stores import migrate
from website.files import write_site

pytestmark = pytest.mark.anyio

HASHED = "assets/main.0123abcd.min.css"
PAGE = "<head>\n</head><script>let a</script><p>Errors</p>"
BROWSER = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of three pages and a style sheet."""
    rendered, built = tmp_path_factory.mktemp("rendered"), tmp_path_factory.mktemp("site")
    for name in ("index.html", "errors.html", "guides/index.html", MISSING, HASHED):
        (rendered / name).parent.mkdir(exist_ok=True)
        (rendered / name).write_text(PAGE)
    write_site(
        rendered, built, {"errors.md": "# Errors\n", "llms.txt": "- [Errors](/docs/errors.md)\n"}
    )
    return built


async def get(folder: Path, path: str, **fields: str) -> Response:
    """Return the response to a request of a page; the names of fields have _ for -."""
    named = {name.replace("_", "-").encode(): value.encode() for name, value in fields.items()}
    return await Documentation(folder).pages()[path](Request("GET", path, b"", "127.0.0.1", named))


def headers(response: Response) -> dict[str, str]:
    lines = (line.decode().partition(": ") for line in response.headers)
    return {name: value for name, _, value in lines}


async def test_each_file_has_its_media_type_and_caching(folder: Path) -> None:
    for path, media_type, caching in [
        ("/docs/", "text/html; charset=utf-8", "public, no-cache"),
        ("/docs/errors", "text/html; charset=utf-8", "public, no-cache"),
        ("/docs/guides/", "text/html; charset=utf-8", "public, no-cache"),
        ("/docs/errors.md", "text/markdown; charset=utf-8", "public, no-cache"),
        ("/docs/llms.txt", "text/plain; charset=utf-8", "public, no-cache"),
        ("/llms.txt", "text/plain; charset=utf-8", "public, no-cache"),
        (f"/docs/{HASHED}", "text/css; charset=utf-8", "public, max-age=31536000, immutable"),
    ]:
        with case(path):
            response = await get(folder, path)
            found = headers(response)
            assert response.status == 200
            assert (found["content-type"], found["cache-control"]) == (media_type, caching)
            assert ("content-security-policy" in found) == media_type.startswith("text/html")


async def test_redirects_work_below_any_path_of_a_proxy(folder: Path) -> None:
    for path, target in [
        *(("/", "docs/"), ("/docs", "docs/"), ("/docs/errors/", "../errors")),
        *(("/docs/errors.html", "errors"), ("/docs/index.html", "./")),
        *(("/docs/guides", "guides/"), ("/docs/guides/index.html", "./")),
    ]:
        response = await get(folder, path)
        assert (response.status, headers(response)) == (307, {"location": target}), path


async def test_a_file_is_compressed_for_a_client_that_takes_gzip(folder: Path) -> None:
    compressed, plain = [
        await get(folder, "/docs/errors.md", accept_encoding=coding) for coding in ("gzip", "br")
    ]
    assert gzip.decompress(compressed.body) == plain.body == b"# Errors\n"
    assert headers(compressed)["content-encoding"] == "gzip"
    assert "content-encoding" not in headers(plain)
    assert headers(compressed)["vary"] == headers(plain)["vary"] == "Accept-Encoding"
    assert headers(compressed)["etag"] != headers(plain)["etag"]


async def test_a_file_that_the_client_has_cached_is_not_sent_again(folder: Path) -> None:
    tag = headers(await get(folder, "/docs/errors", accept_encoding="gzip"))["etag"]
    response = await get(folder, "/docs/errors", accept_encoding="gzip", if_none_match=tag)
    assert (response.status, response.body) == (304, b"")
    assert headers(response).keys() == {"etag", "cache-control", "vary"}
    other = await get(folder, "/docs/errors", accept_encoding="br", if_none_match=tag)
    assert other.status == 200


async def test_a_page_runs_only_our_scripts_and_loads_only_from_this_service(folder: Path) -> None:
    policy = headers(await get(folder, "/docs/"))["content-security-policy"]
    directives = {words[0]: words[1:] for words in map(str.split, policy.split(";"))}
    assert directives["default-src"] == directives["frame-ancestors"] == ["'none'"]
    digest = "'sha256-IfEXP/8HLuXoAiy0hZVrCAcjcLsZqYFpLOHDGj8enqE='"
    assert directives["script-src"] == ["'self'", digest]


async def test_a_service_without_built_docs_says_how_to_build_them(tmp_path: Path) -> None:
    docs = Documentation(tmp_path)
    assert [*docs.pages()] == ["/"]
    for path in ("/docs", "/docs/", "/docs/llms.txt"):
        with pytest.raises(NotFound, match="the documentation is not built; run `make docs`"):
            await docs.missing(Request("GET", path, b"", "127.0.0.1", {b"accept": b"text/html"}))


# What was built, over HTTP


async def test_pages_need_no_key_and_head_has_the_headers_of_get(service: Service) -> None:
    for path in ("/docs/", "/docs/operations/listPets", "/docs/errors.md"):
        with case(path):
            head, got = [await service.request(method, path) for method in ("HEAD", "GET")]
            assert (got.status_code, head.content) == (200, b"")
            assert got.headers["x-content-type-options"] == "nosniff"
            assert "x-ratelimit-limit" not in got.headers
            for response in (head, got):
                del response.headers["x-request-id"]
            assert head.headers == got.headers


async def test_only_the_listed_files_are_served(service: Service) -> None:
    for path in (
        *("/nothing", "/docs/nothing", "/docs/errors.html.gz", "/docs/files.json"),
        *("/docs/404.html", "/docs/../app.py", "/docs/%2e%2e/app.py", "/docs/..%2fapp.py"),
        *("/docs//errors", "/docs//etc/passwd", "/docs/errors%00", "/docs/errors.md/"),
        "/docs/" + "a/" * 3000,
    ):
        with case(path):
            assert_error(await service.request("GET", path), 404, "not_found")
            response = await service.client.get(path, headers={"Accept": BROWSER})
            assert response.status_code == 404
            assert response.headers["content-type"] == "text/html; charset=utf-8"
            assert response.headers["vary"] == "Accept"
            assert response.headers["cache-control"] == "no-store"
            assert "default-src 'none'" in response.headers["content-security-policy"]
            assert "<h1>Page not found</h1>" in response.text
            assert 'href="/docs/style.css"' in response.text


# Liveness and readiness, also while a process drains


async def test_health_checks_need_no_key_and_no_redis_and_count_against_none(
    database: Path,
) -> None:
    async with running_service(database, redis="redis://127.0.0.1:1") as service:
        key = await service.issue(per_minute=50)
        for path, status in (("/healthz", "alive"), ("/readyz", "ready")):
            for token in (key.token, None):
                response = await service.request("GET", path, token)
                assert (response.status_code, response.json()) == (200, {"status": status})
                assert "X-RateLimit-Limit" not in response.headers
                assert response.headers["X-Content-Type-Options"] == "nosniff"
        usage = await service.request("GET", "/v1/usage", key.token)
        assert usage.json()["minute"]["remaining"] == 50


class SlowStore(SqliteStore):
    """Counts how often it is checked, which takes some turns of the loop."""

    checks = 0

    async def check(self) -> None:
        self.checks += 1
        for _ in range(10):
            await asyncio.sleep(0)
        await super().check()


async def test_concurrent_health_checks_share_one_query(database: Path) -> None:
    store = SlowStore(database)
    migrate(store, database)
    await store.open()
    # Without a service, whose own checks of the files would be counted too.
    health, request = HealthPages(store), http_request("GET", b"/readyz", [])
    for times in (1, 2):
        responses = await asyncio.gather(*(health.ready(request) for _ in range(50)))
        assert {response.status for response in responses} == {200}
        assert store.checks == times
    await store.close()
    async with running_service(database, store=SlowStore(database)) as service:
        database.rename(database.with_suffix(".moved"))
        requests = (service.request("GET", "/readyz") for _ in range(3))
        for response in await asyncio.gather(*requests):
            assert_error(response, 503, "service_unavailable")


async def test_a_draining_process_is_alive_but_not_ready_and_closes_each_connection(
    service: Service,
) -> None:
    key = await service.issue()
    before = await service.request("GET", "/v1/pets", key.token)
    assert "Connection" not in before.headers
    service.app.shut_down()
    for method, path, status in [
        ("GET", "/healthz", 200),
        ("GET", "/readyz", 503),
        ("GET", "/v1/pets", 200),
        ("HEAD", "/docs", 307),
        ("POST", "/v1/pets", 201),
        ("DELETE", "/v1/pets/1", 204),
        ("GET", "/v1/pets/1", 404),
        ("GET", "/nowhere", 404),
    ]:
        body = {"name": "Bella", "categoryId": 1} if method == "POST" else None
        response = await service.request(method, path, key.token, json=body)
        assert response.status_code == status
        assert response.headers.get_list("Connection") == ["close"]
        if path == "/readyz":
            assert response.json() == {"status": "stopping"}


# What crawlers find at the usual address


async def test_crawlers_are_kept_to_the_documentation(service: Service) -> None:
    response = await service.request("GET", "/robots.txt")
    assert response.headers["Content-Type"] == "text/plain; charset=utf-8"
    assert response.headers["Cache-Control"] == "public, max-age=86400"
    assert response.text.splitlines() == [
        *("User-agent: *", "Allow: /v1/openapi.json", "Disallow: /v1/", "Disallow: /console/")
    ]
    assert_error(await service.request("POST", "/robots.txt"), 405, "method_not_allowed")
