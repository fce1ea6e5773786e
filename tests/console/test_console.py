"""The path of a request of the console: who may send it, what it costs, and pages of errors."""

import gzip
import re
from collections.abc import AsyncIterator
from html import unescape
from pathlib import Path

import httpx
import pytest

from petstore.console.console import PAGES
from petstore.console.page import ConsolePage
from petstore.http.messages import Request
from petstore.interface.operations import OPERATIONS
from petstore.keys.model import ROLES, Role
from support.passwords import LOGIN, add_with_password, sign_in
from support.service import SERVICE_URL, Service, running_service
from support.stores import do, locked
from support.visitor import FORM, SAME_ORIGIN, Visitor, newcomer, signed_in, words


async def receive_nothing() -> bytes:
    raise AssertionError


SCOPES = {operation.id: operation.scope for operation in OPERATIONS}
pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("dogs")]

BELLA = {"name": "Bella", "categoryId": "1", "status": "available"}
PROTECTED = [page for page in PAGES if not page.public]


def target(page: ConsolePage) -> str:
    """Return an address of a page."""
    return (
        f"/console{page.path.partition('{')[0]}{'1' if '{' in page.path else ''}"
        + (page.path.partition("}")[2])
    )


@pytest.fixture(scope="module")
async def everybody(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Service]:
    """A service for tests that change nothing in it."""
    database = tmp_path_factory.mktemp("everybody") / "petstore.db"
    async with running_service(database, anonymous_per_minute=10_000) as service:
        yield service


def assert_page(response: httpx.Response, status: int) -> str:
    """Return the text of a page with this status: HTML, with a heading, that nobody may frame."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert response.headers["cache-control"] == "no-store"
    assert response.headers["x-frame-options"] == "DENY"
    assert "frame-ancestors 'none'" in response.headers["content-security-policy"]
    assert response.text.count("<h1>") == 1
    return response.text


def hidden_of(page: str) -> dict[str, str]:
    """Return the hidden fields of the forms in a page, without empty ones."""
    found = re.findall(r'type="hidden" name="([^"]+)" value="([^"]+)"', page)
    return {name: unescape(value) for name, value in found}


async def test_a_page_needs_a_session_and_no_cache_stores_it(everybody: Service) -> None:
    for page in PAGES:
        for visitor in (await signed_in(everybody), newcomer(everybody)):
            response = await visitor.client.request(
                page.method, f"{target(page)}?after=", headers=SAME_ORIGIN | FORM
            )
            assert response.headers.get_list("cache-control") == ["no-store"], page
        if not page.public and page.method == "POST":
            assert "Sign in again" in assert_page(response, 401), page
        elif not page.public:
            assert response.status_code == 303, page
            assert response.headers["location"].startswith("/console/sign-in")


@pytest.mark.parametrize("role", ["viewer", "clerk", "manager"])
async def test_a_page_needs_the_scope_of_its_operation(everybody: Service, role: Role) -> None:
    person = await signed_in(everybody, role)
    for page in PROTECTED:
        scope = SCOPES[page.needs] if page.needs else None
        if scope not in (None, *ROLES[role]):
            headers = SAME_ORIGIN | FORM
            response = await person.client.request(page.method, target(page), headers=headers)
            told = f"Your role ({role.capitalize()}) does not include this."
            assert told in assert_page(response, 403), page


async def test_a_form_from_another_origin_is_refused(everybody: Service) -> None:
    for visitor in (await signed_in(everybody), newcomer(everybody)):
        for page in PAGES:
            if page.method == "POST":
                refused = await visitor.client.post(
                    target(page), headers=FORM | {"Sec-Fetch-Site": "cross-site"}
                )
                assert "did not come from the console" in assert_page(refused, 403), page
                assert "set-cookie" not in refused.headers


async def status_of_form(service: Service, headers: dict[str, str]) -> int:
    sent = await newcomer(service).client.post("/console/sign-in", headers=headers | FORM)
    return sent.status_code


@pytest.mark.parametrize(
    ("headers", "is_refused"),
    [
        ({}, True),
        ({"Origin": "http://evil.example"}, True),
        ({"Origin": "null"}, True),
        ({"Origin": "http://"}, True),
        ({"Origin": "petstore.test"}, True),
        ({"Origin": "http://petstore.test.evil.example"}, True),
        ({"Origin": "http://petstore.test:81"}, True),
        ({"Origin": "ftp://petstore.test"}, True),
        ({"Origin": "chrome-extension://petstore.test"}, True),
        ({"Origin": SERVICE_URL, "Sec-Fetch-Site": "same-site"}, True),
        ({"Origin": SERVICE_URL, "Sec-Fetch-Site": "none"}, True),
        ({"Origin": SERVICE_URL}, False),
        ({"Origin": "https://petstore.test"}, False),
        # Only a proxy that replaces the Host lets a browser send this.
        ({"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, False),
    ],
)
async def test_a_form_must_come_from_the_same_origin(
    everybody: Service, headers: dict[str, str], *, is_refused: bool
) -> None:
    assert await status_of_form(everybody, headers) == (403 if is_refused else 401)


@pytest.mark.parametrize(
    ("public_url", "origin"),
    [
        ("https://shop.example/a", "https://shop.example"),
        ("https://Shop.example:443", "https://shop.example"),
        ("http://petstore.test:8080", "http://petstore.test:8080"),
        ("https://[2001:db8::443]", "https://[2001:db8::443]"),
    ],
)
async def test_with_a_public_url_only_its_origin_is_accepted(
    database: Path, public_url: str, origin: str
) -> None:
    own = {"Sec-Fetch-Site": "same-origin"}
    scheme, _, rest = origin.partition("://")
    other = "http" if scheme == "https" else "https"
    async with running_service(database, public_url=public_url) as service:
        for headers in ({"Origin": origin}, own, own | {"Origin": origin}):
            assert await status_of_form(service, headers) == 401
        for sent in (f"{origin}.org", SERVICE_URL, f"{other}://{rest}", f"{origin}:81", "null"):
            for headers in ({}, own):
                assert await status_of_form(service, headers | {"Origin": sent}) == 403


async def test_a_request_without_a_host_has_no_origin(everybody: Service) -> None:
    fields = {b"origin": b"http://"}
    form = Request("POST", "/console/sign-in", b"", "127.0.0.1", fields, version="1.0", content=b"")
    assert (await everybody.app(form, receive_nothing)).status == 403


async def test_the_console_has_no_cors_headers(database: Path) -> None:
    async with running_service(database, allowed_origin=("*",)) as service:
        person = await signed_in(service)
        headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        for method in ("OPTIONS", "GET", "POST"):
            response = await person.client.request(method, "/console/account", headers=headers)
            assert not [name for name in response.headers if name.startswith("access-control")]
            assert "Origin" not in response.headers.get("vary", "")


@pytest.mark.parametrize("site", ["cross-site", None])
async def test_a_link_from_another_site_opens_the_page_for_a_signed_in_person(
    service: Service, staff: Visitor, site: str | None
) -> None:
    mail = newcomer(service).client
    headers = {} if site is None else {"Sec-Fetch-Site": site}
    arrived = assert_page(await mail.get("/console/pets?status=sold", headers=headers), 200)
    onward = "/console/sign-in?next=%2Fpets%3Fstatus%3Dsold"
    assert f'<meta http-equiv="refresh" content="0; url={onward}">' in arrived
    assert f'<a href="{onward}">' in arrived
    # The browser requests it with the cookie, because a page of the console does.
    passed = await staff.client.get(onward, headers=SAME_ORIGIN)
    assert passed.headers["location"] == "/console/pets?status=sold"
    for stranger in (mail, newcomer(service).client):  # is not led round in circles
        form = await stranger.get(onward, headers=headers)
        assert 'name="key"' in assert_page(form, 200)


async def test_input_is_kept_when_the_session_has_ended(service: Service) -> None:
    await add_with_password(service)
    staff = newcomer(service)
    assert (await sign_in(staff)).status_code == 303
    service.clock.advance(31 * 60)
    typed = {**BELLA, "name": '<b>"Bella"</b>', "once": "o-1"}
    form = assert_page(await staff.post("/pets", **typed), 401)
    assert "then you can send what you typed" in form
    assert form.count('name="typed.name"') == 2  # also in the form of a key
    kept = hidden_of(form)
    assert kept["again"] == "/pets"
    assert kept["typed.name"] == typed["name"]
    wrong = assert_page(await sign_in(staff, LOGIN, "wrong password", **kept), 401)
    assert hidden_of(wrong) == kept
    asked = assert_page(await sign_in(staff, **kept), 200)
    assert "Send it again?" in asked
    assert "o-1</bdi>" not in asked
    assert 'action="/console/pets"' in asked
    assert hidden_of(asked) == typed
    assert "(#1)." in words(await staff.submit("/pets", **hidden_of(asked)))


async def test_a_file_without_a_session_only_asks_to_sign_in(everybody: Service) -> None:
    for content in (b"name", b"n" * 70_000):
        file = {"file": ("a.csv", content)}
        form = assert_page(await newcomer(everybody).post("/pets", files=file, name="Bella"), 401)
        assert "fill in the form again" in form
        assert "again" not in hidden_of(form)


async def test_forms_without_a_session_are_limited_by_address(database: Path) -> None:
    async with running_service(database, anonymous_per_minute=2) as service:
        sent = [await newcomer(service).post("/pets", **BELLA) for _ in range(3)]
        assert [response.status_code for response in sent] == [401, 401, 429]
        assert hidden_of(sent[-1].text) == BELLA


async def test_a_session_may_end_before_a_form_has_arrived(
    service: Service, staff: Visitor
) -> None:
    async def late() -> AsyncIterator[bytes]:
        yield b"name=Bella&"
        await service.store.write(do("DELETE FROM console_sessions"))
        yield b"categoryId=1"

    headers = SAME_ORIGIN | FORM
    sent = await staff.client.post("/console/pets", content=late(), headers=headers)
    assert "You are signed out" in assert_page(sent, 401)
    assert (await service.request("GET", "/v1/pets", staff.token)).json() == []


async def test_input_is_kept_at_the_rate_limit_unless_it_is_large(database: Path) -> None:
    async with running_service(database, console_per_minute=1) as service:
        person = await signed_in(service)
        assert (await person.get("/pets")).status_code == 200
        typed = {**BELLA, "name": '<b>"Bella"</b>', "once": "o-1"}
        refused = await person.post("/pets", **typed)
        page = assert_page(refused, 429)
        assert refused.headers["retry-after"] == "60"
        assert "wait 60 seconds. What you sent is kept on this page." in words(refused)
        assert 'action="/console/pets"' in page
        assert hidden_of(page) == typed
        assert "o-1</bdi>" not in page
        for large in (b"name=" + b"x" * 5_000, b"&".join([b"a=1"] * 300)):
            headers = SAME_ORIGIN | FORM
            refused = await person.client.post("/console/pets", content=large, headers=headers)
            assert "Send it again" not in assert_page(refused, 429)
        service.clock.advance(60)
        assert (await person.post("/pets", **hidden_of(page))).status_code == 303
        pets = await service.request("GET", "/v1/pets", person.token)
        assert [pet["name"] for pet in pets.json()] == [typed["name"]]


async def test_input_is_kept_without_a_database_or_if_the_change_cannot_be_written(
    service: Service, staff: Visitor, database: Path
) -> None:
    typed = {**BELLA, "once": "o-1"}
    await service.store.close()
    failed = await staff.post("/pets", **typed)
    assert "Wait a moment" in assert_page(await staff.get("/pets"), 503)
    await service.store.open()
    assert failed.headers["retry-after"] == "1"
    assert "Wait a moment, and try again. What you sent is kept" in words(failed)
    assert hidden_of(assert_page(failed, 503)) == typed
    typed |= {"description": "x" * 30_000}  # more than is kept of a stranger
    with locked(database, service.store):
        failed = await staff.post("/pets", **typed)
    assert hidden_of(assert_page(failed, 503)) == typed
    for _ in range(2):  # a person who presses the button twice adds one pet
        await staff.submit("/pets", **hidden_of(failed.text))
    pets = await service.request("GET", "/v1/pets", staff.token)
    assert len(pets.json()) == 1


async def test_no_page_that_is_read_waits_for_changes(database: Path) -> None:
    async with running_service(database) as service:
        person = await signed_in(service)
        webhook = {"url": "https://shop.example", "description": "", "types": []}
        assert (await person.post("/webhooks", **webhook)).status_code == 201
        read = [page for page in PROTECTED if page.method == "GET"]
        with locked(database):
            statuses = [(await person.client.get(target(page))).status_code for page in read]
        assert 503 not in statuses, dict(zip(read, statuses, strict=True))


async def test_an_unknown_address_or_method_or_an_invalid_query_gets_a_page(
    everybody: Service,
) -> None:
    for visitor in (await signed_in(everybody), newcomer(everybody)):
        for path in ("/nothing", "/pets/1/nothing", "/pets/", "/%00", "/assets/a.js"):
            response = await visitor.client.get(f"{SERVICE_URL}/console{path}")
            text = assert_page(response, 404)
            assert "The console has no page at this address." in text
            assert ("Sign out" in text) is bool(visitor.key_id)
        for asked in ("PUT /pets", "OPTIONS /pets", "GET /pets/7/delete", "BREW /sign-in"):
            method, path = asked.split()
            response = await visitor.client.request(method, f"/console{path}", headers=SAME_ORIGIN)
            assert "be opened directly" in assert_page(response, 405), asked
            assert response.headers["allow"]
    person = await signed_in(everybody)
    for query in ("%FF=%00", "&".join(["a=1"] * 300), "cursor=%00", "id=x"):
        shown = await person.client.get(f"/console/pets?{query}", headers=SAME_ORIGIN)
        assert shown.status_code in (200, 400)
        assert_page(shown, shown.status_code)


MULTIPART = "multipart/form-data; boundary=b"
PART = b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1'


@pytest.mark.parametrize(
    ("content_type", "body", "status"),
    [
        *((kind, b"name=Bella", 415) for kind in ("application/json", "text/plain", "", ";;;\xff")),
        ("multipart/form-data", b"", 415),
        *((MULTIPART, body, 400) for body in (b"nothing", PART, b"--b\r\n\r\nBella\r\n--b--\r\n")),
        (MULTIPART, (PART + b"\r\n") * 300 + b"--b--\r\n", 400),
        (FORM["Content-Type"], b"&".join(b"a%d=1" % n for n in range(300)), 400),
        (FORM["Content-Type"], b"name=" + b"x" * 65_536, 413),
        (FORM["Content-Type"], b"name=%00&categoryId=%FF%FE&status=%ED%A0%80", 400),
        (FORM["Content-Type"], b"\x00\xff\xfe=\x80&=&&;", 400),
        (FORM["Content-Type"], b"name=%E2%80%AE&name=b&categoryId=9999999999999999999999", 400),
    ],
)
async def test_a_page_refuses_a_body_that_is_not_a_form(
    everybody: Service, content_type: str, body: bytes, status: int
) -> None:
    person = await signed_in(everybody)
    kind = (b"content-type", content_type.encode("latin-1"))
    headers = [(b"sec-fetch-site", b"same-origin"), kind]
    assert_page(await person.client.post("/console/pets", content=body, headers=headers), status)


async def test_an_internal_error_shows_a_page_with_the_request_id(
    service: Service, staff: Visitor, caplog: pytest.LogCaptureFixture
) -> None:
    await service.store.write(do("ALTER TABLE pets RENAME TO cats"))
    failed = await staff.client.get("/console/pets", headers={"X-Request-Id": "r-1"})
    assert "the request r-1" in assert_page(failed, 500)
    assert "request r-1 failed" in caplog.text


async def test_the_files_of_pages_need_no_session(everybody: Service) -> None:
    stranger = newcomer(everybody)
    form = (await stranger.get("/sign-in")).text
    files = re.findall(r'(?:href|src)="/console(/assets/[^"]+)"', form)
    assert {path.rpartition(".")[2] for path in files} == {"css", "js", "svg"}
    for path in files:
        served = await stranger.get(path)
        assert served.status_code == 200
        assert served.headers["cache-control"].endswith("immutable")
        assert len(gzip.compress(served.content)) <= 10_000
        assert len(served.content) <= 19_000 or not path.endswith(".js")
        assert served.headers["content-encoding"] == "gzip"
        plain = await stranger.client.get(f"/console{path}", headers={"Accept-Encoding": ""})
        assert "content-encoding" not in plain.headers
        assert plain.content == served.content
