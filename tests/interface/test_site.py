"""The documentation at ``/docs``, of a small folder and of what ``make docs`` built."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from petstore.errors import NotFound
from petstore.http.messages import Request, Response
from petstore.interface.addresses import Addresses
from petstore.interface.application import PublicPage
from petstore.interface.site import CODINGS, Site
from support.error_body import assert_error
from support.service import Service
from website.files import write_site

pytestmark = pytest.mark.anyio

HASHED = "assets/main.0123abcd.min.css"
TYPES = ("html", "markdown")
PAGE = "<head>\n</head><p>Errors</p>"
DECODERS: dict[str | None, Callable[[bytes], bytes]] = {
    "zstd": zstandard.decompress,
    "gzip": gzip.decompress,
    None: bytes,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site of two pages and a style sheet."""
    rendered, built = tmp_path_factory.mktemp("rendered"), tmp_path_factory.mktemp("site")
    for name, text in {
        "index.html": PAGE,
        "errors.html": PAGE,
        "guides/index.html": PAGE,
        HASHED: "p {}",
    }.items():
        (rendered / name).parent.mkdir(exist_ok=True)
        (rendered / name).write_text(text)
    texts = {
        "errors.md": "# Errors\n",
        "guides/index.md": "# Guides\n",
        "llms.txt": "- [Errors](/docs/errors.md)\n",
    }
    write_site(rendered, built, texts)
    return built


async def get(folder: Path, path: str, method: str = "GET", **fields: str) -> Response:
    """Return the response to a request of a page; the names of fields have _ for -."""
    named = {name.replace("_", "-").encode(): value.encode() for name, value in fields.items()}
    return await pages(folder)[path](Request(method, path, b"", "127.0.0.1", named))


def pages(folder: Path) -> dict[str, PublicPage]:
    return Site(folder).pages(Addresses("https://shop.example").root)


def headers(response: Response) -> dict[str, str]:
    lines = (line.decode().partition(": ") for line in response.headers)
    return {name: value for name, _, value in lines}


@pytest.mark.parametrize(
    "path",
    [
        *("/docs/../settings.py", "/docs/%2e%2e/files.json", "/docs/files.json"),
        *("/docs/errors.html.gz", "/docs//errors", "/docs/errors/", "/docs/nothing"),
    ],
)
def test_only_the_listed_files_are_served(folder: Path, path: str) -> None:
    assert path not in pages(folder)


@pytest.mark.parametrize("path", ["/docs/", "/docs/errors", "/docs/llms.txt"])
async def test_a_service_without_a_built_site_says_how_to_build_it(
    tmp_path: Path, path: str
) -> None:
    assert path not in pages(tmp_path)
    with pytest.raises(NotFound, match="the documentation is not built; run `make docs`"):
        await Site(tmp_path).missing(Request("GET", path, b"", "127.0.0.1", {}))
    assert headers(await get(tmp_path, "/docs")) == {"location": "docs/"}


@pytest.mark.parametrize(
    ("path", "target"),
    [
        *(("/", "docs/"), ("/docs", "docs/"), ("/llms-full.txt", "docs/llms-full.txt")),
        *(("/docs/errors.html", "errors"), ("/docs/index.html", "./")),
        *(("/docs/guides", "guides/"), ("/docs/guides/index.html", "./")),
    ],
)
async def test_redirects_work_below_any_path_of_a_proxy(
    folder: Path, path: str, target: str
) -> None:
    response = await get(folder, path)
    assert (response.status, headers(response)) == (307, {"location": target})


@pytest.mark.parametrize(
    ("path", "media_type"),
    [
        *(("/docs/", "text/html; charset=utf-8"), ("/docs/errors", "text/html; charset=utf-8")),
        *(("/docs/guides/", "text/html; charset=utf-8"), (f"/docs/{HASHED}", "text/css")),
        ("/docs/errors.md", "text/markdown; charset=utf-8"),
    ],
)
async def test_each_file_has_its_media_type(folder: Path, path: str, media_type: str) -> None:
    response = await get(folder, path)
    assert response.status == 200
    assert headers(response)["content-type"].startswith(media_type)


@pytest.mark.parametrize("coding", [*CODINGS, None])
async def test_a_file_is_sent_in_a_coding_that_the_client_accepts(
    folder: Path, coding: str | None
) -> None:
    response = await get(folder, "/docs/errors.md", accept_encoding=coding or "br")
    assert DECODERS[coding](response.body) == b"# Errors\n"
    assert headers(response).get("content-encoding") == coding
    assert headers(response)["vary"] == "Accept-Encoding"


@pytest.mark.parametrize(
    ("path", "text"), [("/docs/errors", "# Errors\n"), ("/docs/guides/", "# Guides\n")]
)
async def test_a_page_is_markdown_for_a_client_that_prefers_it(
    folder: Path, path: str, text: str
) -> None:
    got = await get(folder, path, accept="text/markdown, */*;q=0.1", accept_encoding="zstd")
    assert DECODERS["zstd"](got.body).decode() == text
    assert headers(got)["content-type"] == "text/markdown; charset=utf-8"
    assert "content-security-policy" not in headers(got)


async def test_a_page_in_two_types_varies_by_what_the_client_accepts(folder: Path) -> None:
    page, markdown = [await get(folder, "/docs/errors", accept=f"text/{a}") for a in TYPES]
    assert page.body != markdown.body
    assert headers(page)["vary"] == headers(markdown)["vary"] == "Accept, Accept-Encoding"
    tag = headers(page)["etag"]
    again = {"accept": "text/markdown", "if_none_match": tag}
    assert (await get(folder, "/docs/errors", **again)).status == 200
    again["if_none_match"] = headers(markdown)["etag"]
    assert (await get(folder, "/docs/errors", **again)).status == 304


@pytest.mark.parametrize("path", ["/llms.txt", "/docs/llms.txt"])
async def test_the_links_of_the_index_begin_with_the_url_of_the_service(
    folder: Path, path: str
) -> None:
    got = await get(folder, path, host="127.0.0.1:8000")
    assert got.body == b"- [Errors](https://shop.example/docs/errors.md)\n"
    assert headers(got)["content-type"] == "text/plain; charset=utf-8"
    again = await get(folder, path, host="127.0.0.1:8000", if_none_match=headers(got)["etag"])
    assert (again.status, again.body) == (304, b"")


async def test_the_index_at_another_host_has_another_tag(folder: Path) -> None:
    page = Site(folder).pages(Addresses().root)["/llms.txt"]
    hosts = (b"a.example", b"b.example:81")
    first, second = [
        await page(Request("GET", "/llms.txt", b"", "127.0.0.1", {b"host": host})) for host in hosts
    ]
    assert second.body == b"- [Errors](http://b.example:81/docs/errors.md)\n"
    assert headers(first)["etag"] != headers(second)["etag"]


async def test_each_coding_has_its_own_entity_tag(folder: Path) -> None:
    tags = [
        headers(await get(folder, "/docs/errors", accept_encoding=coding))["etag"]
        for coding in ("identity", "gzip", "zstd")
    ]
    assert len(set(tags)) == 3
    assert all(tag.startswith('"') for tag in tags)


async def test_a_file_that_the_client_has_cached_is_not_sent_again(folder: Path) -> None:
    tag = headers(await get(folder, "/docs/errors", accept_encoding="gzip"))["etag"]
    response = await get(folder, "/docs/errors", accept_encoding="gzip", if_none_match=tag)
    assert (response.status, response.body) == (304, b"")
    assert headers(response).keys() == {"etag", "cache-control", "vary"}
    other = await get(folder, "/docs/errors", accept_encoding="zstd", if_none_match=tag)
    assert other.status == 200


async def test_caches_revalidate_pages_and_keep_content_addressed_files(folder: Path) -> None:
    page, style = await get(folder, "/docs/errors"), await get(folder, f"/docs/{HASHED}")
    assert headers(page)["cache-control"] == "public, no-cache"
    assert headers(style)["cache-control"] == "public, max-age=31536000, immutable"


async def test_a_page_can_load_resources_only_from_this_service(folder: Path) -> None:
    policy = headers(await get(folder, "/docs/"))["content-security-policy"]
    directives = {words[0]: words[1:] for words in map(str.split, policy.split(";"))}
    assert directives["default-src"] == ["'none'"]
    assert directives["frame-ancestors"] == ["'none'"]
    assert directives["script-src"] == ["'self'"]
    assert "content-security-policy" not in headers(await get(folder, "/docs/errors.md"))


# The real site, over HTTP


@pytest.mark.parametrize("path", ["/docs/", "/docs/operations/listPets", "/docs/errors.md"])
async def test_pages_need_no_key(service: Service, path: str) -> None:
    response = await service.request("GET", path)
    assert response.status_code == 200, response.text
    assert response.headers["x-content-type-options"] == "nosniff"
    assert "x-ratelimit-limit" not in response.headers


async def test_head_of_a_page_has_the_headers_of_get(service: Service) -> None:
    head, got = [await service.request(method, "/docs/errors") for method in ("HEAD", "GET")]
    assert head.content == b""
    for response in (head, got):
        del response.headers["x-request-id"]
    assert head.headers == got.headers


async def test_a_missing_page_has_the_error_body(service: Service) -> None:
    assert_error(await service.request("GET", "/docs/nothing"), 404, "not_found")


async def test_scripts_are_allowed_only_by_their_digest(service: Service) -> None:
    policy = (await service.request("GET", "/docs/")).headers["content-security-policy"]
    (scripts,) = [part for part in policy.split("; ") if part.startswith("script-src")]
    _, own, *digests = scripts.split()
    assert own == "'self'"
    assert digests
    assert all(digest.startswith("'sha256-") for digest in digests)


async def test_a_browser_at_an_address_without_a_page_gets_one_like_the_docs(
    service: Service,
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"}
    roots = {"/docs/nothing": "../docs", "/nothing": "docs", "/a/b/": "../../docs"}
    for path, root in roots.items():
        response = await service.client.get(path, headers=browser)
        assert response.status_code == 404
        assert response.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in response.headers["content-security-policy"]
        assert "<h1>There is nothing here</h1>" in response.text
        assert f'href="{root}/style.css"' in response.text
        assert f'href="{root}/../console"' in response.text
        assert f'"base":"{root}/"' in response.text


async def test_a_client_that_prefers_markdown_gets_it_where_there_is_no_page(
    service: Service,
) -> None:
    for path, root in {"/docs/guides/nothing": "../../docs", "/nothing": "docs"}.items():
        response = await service.client.get(path, headers={"Accept": "text/markdown"})
        assert response.status_code == 404
        assert response.headers["content-type"] == "text/markdown; charset=utf-8"
        assert response.headers["vary"] == "Accept"
        assert f"[llms.txt]({root}/llms.txt)" in response.text


@pytest.mark.parametrize(
    ("path", "accept"),
    [
        *(("/docs/nothing", "*/*"), ("/" + "a/" * 20, "text/html")),
        *(("/" + "a/" * 20, "text/markdown"), ("/docs/nothing", "text/html;q=0.5, */*")),
    ],
)
async def test_a_program_at_an_address_without_a_page_gets_the_error_body(
    service: Service, path: str, accept: str
) -> None:
    response = await service.client.get(path, headers={"Accept": accept})
    assert_error(response, 404, "not_found")
    assert response.headers["vary"] == "Accept"
