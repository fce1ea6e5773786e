"""The clients themselves: their settings, their networks and what they warn of."""

import asyncio
import gc
import inspect
import json
import operator
import platform
import ssl
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest
from httpx2 import BaseTransport, Headers

import petstore_client
from petstore_client import (
    AsyncClient,
    AsyncListed,
    Client,
    Listed,
    NoResponse,
    PetstoreError,
    Response,
    errors,
    models,
)
from petstore_client._transport import proxy_for
from support.client_faces import KEY, Face, SleepingClock, each_face, each_of, in_turn, with_threads
from support.odd_service import HANG_UP, error, odd_service, response
from support.tls import self_signed_certificate

PET = {"id": 7, "name": "Bella", "categoryId": 1}


def get(client: Any) -> Any:
    return client.pets.get(7)


# Settings


def test_the_key_and_the_url_can_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PETSTORE_URL", raising=False)
    monkeypatch.delenv("PETSTORE_KEY", raising=False)
    with pytest.raises(ValueError, match="api_key: expected an API key, here or in the environ"):
        Client()
    monkeypatch.setenv("PETSTORE_KEY", KEY)
    assert Client().base_url == "http://127.0.0.1:8000/v1"
    monkeypatch.setenv("PETSTORE_URL", "https://shop.example/store/v1/")
    assert Client().base_url == "https://shop.example/store/v1"


@each_face
def test_a_program_can_provide_its_own_wait_and_gets_the_reason(face: Face) -> None:
    waits: list[tuple[float, str | None]] = []
    clock = SleepingClock()

    def wait(seconds: float, cause: PetstoreError | None) -> None:
        waits.append((round(seconds, 3), None if cause is None else cause.code))
        clock.moment += seconds

    async def wait_async(seconds: float, cause: PetstoreError | None) -> None:
        wait(seconds, cause)

    last_one = response(200, [PET], Link='<?cursor=b>; rel="next"', RateLimit='"minute";r=0;t=30')
    refused, away = error(429, Retry_After=41), error(503, "service_unavailable")
    with odd_service(refused, away, last_one, response(200, [])) as service:
        chosen = wait if face is with_threads else wait_async
        pets = face(service.url, lambda client: client.pets.list(), clock, wait=chosen)
    assert len(pets) == 1
    assert waits == [(41, "some_code"), (0.5, "service_unavailable"), (30, None)]
    assert clock.sleeps == []


SETTINGS: dict[str, list[Any]] = {
    "api_key": ["two words", "line\n", "ключ"],
    "base_url": [
        *("shop.example", "ftp://shop.example", "http://a b", "http://", "http://a:port"),
        *("http://user:s3cret@a", "http://[::1/v1", "http://.example", "http://a/\0"),
    ],
    "max_retries": [-1],
    "max_wait": [-1],
    "timeout": [0],
}
HEADERS = [{"Authorization": "x"}, {"if-match": "x"}, {"X": "a\nb"}, {"a b": "c"}, {"X": "ключ"}]
OPTIONS: dict[str, list[Any]] = SETTINGS | {"headers": HEADERS}


def test_an_invalid_setting_is_refused_and_named_and_not_shown() -> None:
    for name, values in SETTINGS.items():
        for value in values:
            with pytest.raises(ValueError, match=f"^{name}: expected ") as raised:
                Client(**{"api_key": KEY, name: value})
            assert "s3cret" not in str(raised.value)
    for name in ("headers", "api_key", "max_retries", "timeout"):
        for value in OPTIONS[name]:
            with pytest.raises(ValueError, match=f"^{name}: expected "):
                Client(KEY).with_options(**{name: value})
    with pytest.raises(ValueError, match="transport: expected no ssl_context"):
        Client(KEY, transport=BaseTransport(), ssl_context=ssl.create_default_context())


# What is sent


NAIVE = datetime(2026, 12, 24)  # noqa: DTZ001 - that is what is wrong


NUMBER, VISIBLE = "expected a whole number such as 7", "expected visible ASCII characters"
SEVERAL, ZONE = "expected at least one, and no None", "expected a date and time with a time zone"
INVALID: list[tuple[Callable[[Any, Any], Any], str, list[Any]]] = [
    (lambda c, x: c.pets.list(colour=x), "unexpected keyword argument 'colour'", ["red"]),
    (lambda c, x: c.pets.list(id=x), f"^id: {SEVERAL}", [[], [7, None], range(0)]),
    (lambda c, x: c.pets.get(x), f"^pet_id: {NUMBER}", ["1", None, 7.0]),
    (lambda c, x: c.webhooks.deliveries(x), f"^webhook_id: {NUMBER}", ["1"]),
    (lambda c, x: c.orders.place(pet_id=7, ship_date=x), f"^ship_date: {ZONE}", [NAIVE]),
    (lambda c, x: c.orders.list(placed_before=x), f"^placed_before: {ZONE}", [NAIVE]),
    (lambda c, x: c.pets.delete(7, if_match=x), f"^if_match: {VISIBLE}", ["", "a b", "ключ"]),
    (
        lambda c, x: c.pets.create(name="B", category_id=1, idempotency_key=x),
        *(f"^idempotency_key: {VISIBLE}", ["", "two words", "line\n", "ключ"]),
    ),
    (lambda c, x: c.request("GET", x), "^path: expected one that begins with /, such", ["pets"]),
]


@pytest.mark.parametrize(("use", "said", "values"), INVALID)
@each_face
def test_an_invalid_call_is_refused_before_it_is_sent(
    face: Face, use: Callable[[Any, Any], Any], said: str, values: list[Any]
) -> None:
    for value in values:
        with pytest.raises((TypeError, ValueError), match=said):
            face("http://127.0.0.1:1", lambda c, x=value: use(c, x))


@pytest.mark.parametrize(("sort", "starts"), [(None, [1, 101, 201]), ("-id", [250, 150, 50])])
@each_face
def test_more_ids_than_the_service_takes_are_asked_for_in_slices(
    face: Face, sort: str | None, starts: list[int]
) -> None:
    with odd_service(*3 * [response(200, [PET])]) as service:
        found = face(service.url, lambda c: c.pets.list(id=[*range(1, 251), 7], sort=sort))
    assert len(found) == 3
    slices = [parse_qs(urlsplit(asked.target).query)["id"] for asked in service.asked]
    assert [int(each[0]) for each in slices] == starts
    assert sorted(int(each) for some in slices for each in some) == [*range(1, 251)]


@each_face
def test_more_pets_than_the_service_takes_are_added_in_slices_with_one_key(face: Face) -> None:
    news = [models.NewPet(name=f"P{number}", category_id=1) for number in range(201)]
    created = [response(201, [PET | {"id": slice_ + 7}]) for slice_ in range(3)]

    def use(client: Any) -> Any:
        return client.pets.create_many(news, idempotency_key="mine")

    with odd_service(*created) as service:
        assert [pet.id for pet in face(service.url, use)] == [7, 8, 9]
    sent = [
        (asked.fields["idempotency-key"], len(json.loads(asked.body))) for asked in service.asked
    ]
    assert sent == [("mine-0", 100), ("mine-100", 100), ("mine-200", 1)]
    with odd_service(created[0], error(400)) as service, pytest.raises(errors.BadRequest) as raised:
        face(service.url, use)
    assert raised.value.idempotency_key == "mine"


@each_face
def test_a_request_can_be_sent_that_the_client_has_no_method_for(face: Face) -> None:
    def use(client: Any) -> Any:
        return client.request.raw("POST", "/later", query={"dayOf": [1, 2]}, body={"a": 1})

    with odd_service(HANG_UP, response(201, {"id": 7})) as service:
        got = face(service.url, use)
    assert (got.value, got.status) == ({"id": 7}, 201)
    first, again = service.asked
    assert (again.method, again.target) == ("POST", "/v1/later?dayOf=1&dayOf=2")
    assert again.body == b'{"a":1}'
    assert again.fields["idempotency-key"] == first.fields["idempotency-key"]


@pytest.mark.parametrize(
    ("name", "result", "async_result"),
    [
        ("pets.get", models.Pet, Awaitable[models.Pet]),
        ("pets.get.raw", Response[models.Pet], Awaitable[Response[models.Pet]]),
        ("pets.list", Listed[models.Pet], AsyncListed[models.Pet]),
    ],
)
def test_a_method_shows_its_whole_signature(name: str, result: object, async_result: Any) -> None:
    for kind, returned in ((Client, result), (AsyncClient, async_result)):
        method: Any = operator.attrgetter(name)(kind(KEY))
        signature = inspect.signature(method)
        assert signature.return_annotation == returned
        assert method.__name__ in name.split(".")
        assert len(method.__doc__) > 50


# What comes back


@each_face
def test_members_and_values_of_a_newer_service_are_accepted(face: Face) -> None:
    later = PET | {"status": "on_holiday", "colour": "red"}
    with odd_service(response(200, [later], ETag='"x"')) as service:
        got = face(service.url, lambda client: client.pets.get.raw(7))
    assert got.value.status == "on_holiday"
    assert got.value.etag == '"x"'
    assert got.json() == [later]
    assert (got.status, got.headers["etag"], got.request_id) == (200, '"x"', None)


@each_face
def test_what_has_no_content_or_no_etag_says_so(face: Face) -> None:
    with odd_service(response(204, b"", X_Request_Id="abc")) as service:
        got = face(service.url, lambda client: client.pets.delete.raw(7))
    assert (got.value, got.json(), got.request_id) == (None, None, "abc")
    with odd_service(response(200, [PET], ETag='"x"')) as service:
        pets = face(service.url, lambda client: client.pets.list())
    assert pets[0].to_dict()["categoryId"] == 1
    with pytest.raises(AttributeError, match="this Pet has no etag, because it came in a list or"):
        _ = pets[0].etag


@pytest.mark.parametrize(
    ("kind", "secret"),
    [
        (models.KeyWithToken, "token"),
        (models.WebhookWithSecret, "secret"),
        (models.PersonWithInvitation, "invitation"),
    ],
)
def test_no_repr_contains_a_token_or_a_secret(kind: Any, secret: str) -> None:
    value = kind(**dict.fromkeys(kind.__struct_fields__, "seen") | {secret: "s3cret"})
    told = repr(Response("https://shop.example", 201, Headers(), b"s3cret", value)) + repr(value)
    assert f"{kind.__name__}(id='seen', " in told
    assert "s3cret" not in told


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (404, "never_seen", errors.NotFound),
        (418, "teapot", errors.ErrorResponse),
        (507, "never_seen", errors.ServerError),
        (400, "pet_not_available", errors.BadRequest),
        (429, "api_key_banned", errors.KeyBanned),
    ],
)
@each_face
def test_an_unknown_code_raises_the_error_of_its_status(
    face: Face, status: int, code: str, kind: type[errors.ErrorResponse]
) -> None:
    refused = error(status, code, Retry_After=999)
    with odd_service(refused) as service, pytest.raises(kind) as raised:
        face(service.url, get)
    assert type(raised.value) is kind
    assert raised.value.code == code


# Deprecation


@each_face
def test_a_deprecated_operation_warns_once_at_the_calling_line(face: Face) -> None:
    end = "Thu, 05 Dec 2030 00:00:00 GMT"
    deprecated = response(200, [PET], Deprecation="@1795219200", Sunset=end)
    said = f"^GET /pets is deprecated and ends on {end}; update petstore-client$"
    with (
        odd_service(deprecated, deprecated) as service,
        pytest.warns(DeprecationWarning, match=said) as all_,
    ):
        face(service.url, lambda c: in_turn(*2 * [lambda: get(c)]))
    (warning,) = all_
    assert "petstore_client" not in warning.filename


# The network


def test_the_proxy_of_the_environment_is_used_unless_it_names_an_exception(
    no_proxies: pytest.MonkeyPatch,
) -> None:
    def found(url: str) -> str | None:
        proxy = proxy_for(url)
        return None if proxy is None else str(proxy.url)

    shop, proxy = "https://shop.example/v1", "http://proxy.example:3128"
    assert found(shop) is None
    no_proxies.setenv("https_proxy", "http://user:s3cret@proxy.example:3128")
    assert (found(shop), found("http://shop.example/v1")) == (proxy, None)
    no_proxies.setenv("ALL_PROXY", "user:s3cret@proxy.example:3128")
    no_proxies.setenv("no_proxy", "10.0.0.0/8")
    assert found("http://127.0.0.1/v1") == proxy
    for exceptions, url in (
        ("shop.example", "http://shop.example/v1"),
        ("shop.example:8000", "http://shop.example:8000/v1"),
        ("other.example, 127.0.0.0/8", "http://127.0.0.1:8000/v1"),
        ("::1/128", "http://[::1]:8000/v1"),
        ("[::1]", "http://[::1]:8000/v1"),
        ("::1", "http://[::1]/v1"),
    ):
        no_proxies.setenv("no_proxy", exceptions)
        assert found(url) is None


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """An environment without proxies."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    return monkeypatch


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("http_proxy", "socks5://u:s3cret@proxy.example", "http_proxy: expected an HTTP proxy"),
        ("ALL_PROXY", "socks5://u:s3cret@proxy.example", "all_proxy: expected an HTTP proxy"),
        ("http_proxy", "::", "http_proxy: expected an HTTP proxy, such as"),
        ("SSL_CERT_FILE", "/missing", "SSL_CERT_FILE: cannot be read: No such file"),
    ],
)
def test_a_network_of_the_environment_that_cannot_be_used_is_named_and_not_shown(
    no_proxies: pytest.MonkeyPatch,
    name: str,
    value: str,
    said: str,
) -> None:
    no_proxies.setenv(name, value)
    scheme = "https" if name == "SSL_CERT_FILE" else "http"
    with pytest.raises(ValueError, match=f"^{said}") as raised:
        Client(KEY, f"{scheme}://shop.example/v1")
    assert "s3cret" not in str(raised.value)


class OnePet(BaseHTTPRequestHandler):
    """Responds with a pet, on connections that stay open, and notes the port of each request."""

    protocol_version = "HTTP/1.1"
    ports: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        self.ports.append(self.client_address[1])
        content = json.dumps([PET]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(context: ssl.SSLContext | None = None) -> Iterator[str]:
    """Serve pets, perhaps over TLS; give the address without its scheme."""
    OnePet.ports.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), OnePet)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    if context is not None:
        server.socket = context.wrap_socket(
            server.socket, server_side=True, do_handshake_on_connect=False
        )
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


FORK = """
import os, sys
from petstore_client import Client
from petstore_client._rate_limits import RateLimits

client, limits = Client("key", sys.argv[1]), RateLimits(120)
client.pets.get(7)
limits.enter(0, 120)  # a request that another thread has sent
if os.fork() == 0:
    client.pets.get(7)
    sys.exit(limits.enter(0, 120) is not None)
status = os.wait()[1]
client.with_options(timeout=5).pets.get(7)
sys.exit(os.waitstatus_to_exitcode(status))
"""


def test_a_forked_process_has_its_own_connections_and_no_lock_of_its_parent() -> None:
    with serving() as address:
        program = [sys.executable, "-c", FORK, f"http://{address}/v1"]
        subprocess.run(program, check=True, timeout=60)
    of_parent, of_child, with_options = OnePet.ports
    assert of_parent == with_options != of_child


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_another_event_loop_has_its_own_connections_and_other_options_do_not() -> None:
    with serving() as address:
        client = AsyncClient(KEY, f"http://{address}/v1")
        other = client.with_options(timeout=5)
        asyncio.run(in_turn(lambda: get(client), lambda: get(other)))
        asyncio.run(in_turn(lambda: get(client), client.close))
    gc.collect()  # here: the warning of a connection that nobody could close is ignored
    first, with_options, later = OnePet.ports
    assert first == with_options != later


@each_face
def test_requests_are_sent_through_the_proxy_of_the_environment(
    face: Face, no_proxies: pytest.MonkeyPatch
) -> None:
    with odd_service(response(200, [PET])) as proxy:
        no_proxies.setenv("http_proxy", proxy.url)
        assert face("http://shop.example", get).id == 7
    (asked,) = proxy.asked
    assert asked.target == "http://shop.example/v1/pets?id=7"
    version = ".".join(platform.python_version_tuple()[:2])
    client = f"petstore-client/{petstore_client.__version__} python/{version}"
    assert asked.fields["user-agent"] == client


@each_face
def test_certificates_are_those_of_the_system_of_the_environment_or_of_the_client(
    face: Face, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, key = self_signed_certificate(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    own = {"ssl_context": ssl.create_default_context(cafile=certificate)}
    with serving(context) as address:
        url = f"https://{address}"
        with pytest.raises(NoResponse, match="CERTIFICATE_VERIFY_FAILED"):
            face(url, get, max_retries=0)
        assert face(url, get, **own).id == 7
        monkeypatch.setenv("http_proxy", url)
        assert face("http://shop.example", get, **own).id == 7
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert face(url, get).id == 7


def test_importing_the_library_loads_no_slow_module() -> None:
    program = "import sys, petstore_client; print(*sys.modules)"
    loaded = set(subprocess.check_output([sys.executable, "-c", program], text=True).split())
    assert "petstore_client" in loaded
    slow = {"asyncio", "anyio", "httpcore2", "h11", "httpx", "petstore", "rich", "click", "urllib3"}
    assert loaded & slow == set()


# Options


@each_face
def test_a_client_with_other_headers_and_another_key_sends_them(face: Face) -> None:
    def use(client: Any) -> Any:
        traced = client.with_options(headers={"Traceparent": "00-a-b-01", "user-agent": "shop/1"})
        return traced.with_options(headers={"X-Request-Id": "abc"}, api_key="another").pets.get(7)

    with odd_service(response(200, [PET])) as service:
        face(service.url, use)
    fields = service.asked[0].fields
    assert "content-type" not in fields
    assert (fields["traceparent"], fields["x-request-id"]) == ("00-a-b-01", "abc")
    assert (fields["user-agent"], fields["accept"]) == ("shop/1", "application/json")
    assert fields["authorization"] == "Bearer another"


@each_face
@pytest.mark.parametrize(("key", "waits"), [(None, [30]), ("another", [])])
def test_a_client_with_options_knows_the_limits_that_the_key_has_met(
    face: Face, key: str | None, waits: list[int]
) -> None:
    def use(client: Any) -> Any:
        other = client.with_options(timeout=5, api_key=key)
        return in_turn(lambda: get(client), lambda: get(other))

    clock = SleepingClock()
    full = response(200, [PET], RateLimit='"minute";r=0;t=30')
    with odd_service(full, response(200, [PET])) as service:
        face(service.url, use, clock)
    assert clock.sleeps == waits


# Closing


@pytest.mark.parametrize(
    "use",
    [
        get,
        lambda client: client.pets.create(name="Bella", category_id=1),
        lambda client: client.orders.cancel.raw(3),
        lambda client: client.pets.list(),
        lambda client: client.events.follow(),
    ],
)
@each_face
def test_a_closed_client_refuses(face: Face, use: Callable[[Any], Any]) -> None:
    def use_closed(client: Any) -> Any:
        return in_turn(client.with_options(timeout=1).close, lambda: first(use(client)))

    def first(outcome: Any) -> Any:
        is_iterated = hasattr(outcome, "__next__") or hasattr(outcome, "__anext__")
        return each_of(outcome, id) if is_iterated else outcome

    with pytest.raises(errors.ClientClosed, match="the client is closed"):
        face("http://127.0.0.1:1", use_closed)
