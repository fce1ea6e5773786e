"""The service as an ASGI application: its lifespan, and requests as any server hands them over."""

import asyncio
import logging
from collections.abc import AsyncIterator
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import pytest

from petstore.asgi import AsgiApp, Message
from petstore.clock import system_clock
from petstore.http.messages import Request, Response
from support.keys import issue
from support.process import GranianProcess, serving
from support.raw_socket import RawSocket
from support.stores import open_store
from support.waiting import eventually, within

pytestmark = pytest.mark.anyio

BELLA = b'{"name":"Bella","categoryId":1}'
SCOPE = {"type": "http", "http_version": "1.1", "method": "POST", "path": "/v1/pets"}


class Server:
    """A minimal ASGI server: it sends events, and records the application's."""

    def __init__(self, app: AsgiApp) -> None:
        self.app = app
        self._orders: asyncio.Queue[Message] = asyncio.Queue()
        self.told: asyncio.Queue[Message] = asyncio.Queue()

    async def start(self) -> Message:
        self._orders.put_nowait({"type": "lifespan.startup"})
        scope = {"type": "lifespan"}
        self._running = asyncio.create_task(self.app(scope, self._orders.get, self.told.put))
        return await self.told.get()

    async def stop(self) -> Message:
        self._orders.put_nowait({"type": "lifespan.shutdown"})
        await self._running
        return await self.told.get()

    async def request(self, scope: Message, *events: Message) -> tuple[Message, bytes]:
        told: list[Any] = []
        arriving = iter(events)

        async def receive() -> Message:
            return next(arriving)

        async def send(message: Message) -> None:
            told.append(message)

        await self.app(scope, receive, send)
        return told[0], b"".join(message["body"] for message in told[1:])


@pytest.fixture
async def server(
    database: Path, monkeypatch: pytest.MonkeyPatch, root: logging.Logger
) -> AsyncIterator[Server]:
    del root  # which the service takes for itself
    monkeypatch.setenv("PETSTORE_DATABASE", f"sqlite:///{database}")
    server = Server(AsgiApp())
    assert await server.start() == {"type": "lifespan.startup.complete"}
    yield server
    assert await server.stop() == {"type": "lifespan.shutdown.complete"}


@pytest.fixture
async def key(server: Server, database: Path) -> tuple[bytes, bytes]:
    del server
    async with open_store(database) as store:
        issued = await issue(store, system_clock, plan="enterprise")
    return b"authorization", f"Bearer {issued.token}".encode()


def scope(*headers: tuple[bytes, bytes], **other: Any) -> Message:
    fields = [(b"host", b"petstore"), *headers]
    about = {"headers": fields, "query_string": b"", "client": ("192.0.2.1", 1), **SCOPE, **other}
    return {"raw_path": about["path"].encode(), **about}


def body(*pieces: bytes) -> list[Message]:
    events = [{"type": "http.request", "body": piece, "more_body": True} for piece in pieces]
    return [*events, {"type": "http.request"}]


@pytest.mark.parametrize(
    ("field", "version"),
    [
        ((b"content-length", b"31"), "1.1"),
        ((b"transfer-encoding", b"chunked"), "1.1"),
        ((b"accept", b"*/*"), "2"),
    ],
)
async def test_a_body_may_arrive_in_pieces(
    server: Server, key: tuple[bytes, bytes], field: tuple[bytes, bytes], version: str
) -> None:
    asked = scope(key, field, http_version=version)
    start, created = await server.request(asked, *body(BELLA[:5], b"", BELLA[5:]))
    assert (start["status"], msgspec.json.decode(created)["name"]) == (201, "Bella")
    assert [b"location", b"http://petstore/v1/pets/1"] in start["headers"]


async def test_an_incomplete_body_is_refused(server: Server, key: tuple[bytes, bytes]) -> None:
    events = [*body(BELLA[:5])[:1], {"type": "http.disconnect"}]
    start, error = await server.request(scope(key, (b"content-length", b"31")), *events)
    assert (start["status"], msgspec.json.decode(error)["code"]) == (400, "incomplete_body")


@pytest.mark.parametrize(("version", "closes"), [("1.1", True), ("2", False)])
async def test_a_body_that_is_too_large_closes_an_http_1_connection(
    server: Server, key: tuple[bytes, bytes], version: str, *, closes: bool
) -> None:
    asked = scope(key, (b"content-length", b"70000"), http_version=version)
    start, _ = await server.request(asked)
    assert start["status"] == 413
    assert ([b"connection", b"close"] in start["headers"]) is closes


async def test_a_file_is_sent_in_pieces(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    content = bytes(range(256)) * 400
    files = []

    async def page(_: Request) -> Response:
        files.append(BytesIO(content))
        return Response(200, b"", [], file=files[-1])

    application: Any = server.app._app  # noqa: SLF001
    monkeypatch.setitem(application._pages, "/file", page)  # noqa: SLF001
    start, sent = await server.request(scope(method="GET", path="/file"), *body())
    assert [b"content-length", b"102400"] in start["headers"]
    assert sent == content
    assert files[0].closed


async def test_a_long_poll_ends_when_its_client_disconnects_and_not_before(
    server: Server, key: tuple[bytes, bytes]
) -> None:
    arriving: asyncio.Queue[Message] = asyncio.Queue()
    told: asyncio.Queue[Message] = asyncio.Queue()
    asked = scope(key, method="GET", path="/v1/events", query_string=b"cursor=latest&wait=25")
    polling = asyncio.create_task(server.app(asked, arriving.get, told.put))
    for event in body(b"a", b"b"):
        arriving.put_nowait(event)
    await eventually(arriving.empty)
    assert not polling.done()
    for _ in range(2):  # a server says it again
        arriving.put_nowait({"type": "http.disconnect"})
    async with asyncio.timeout(20):
        await polling
    assert told.get_nowait()["status"] == 200


def test_with_granian_a_long_poll_ends_when_its_client_disconnects(tmp_path: Path) -> None:
    with serving(tmp_path, kind=GranianProcess) as server:
        head = f"Host: petstore\r\nAuthorization: Bearer {server.issue()}\r\n\r\n"
        with RawSocket(server.port) as connection:
            connection.send(b"GET /v1/events?cursor=latest&wait=25 HTTP/1.1\r\n" + head.encode())
            assert connection.is_silent(0.5)
        assert within(15, lambda: any("listEvents" in str(line) for line in server.log_lines()))


async def test_the_path_the_version_and_each_header_are_read_as_they_were_sent(
    server: Server, key: tuple[bytes, bytes]
) -> None:
    without_host: dict[str, Any] = {"headers": [key], "client": None}
    for asked, status in (
        (scope(key, raw_path=b"/v1%2Fpets"), 404),
        (scope(key, raw_path=b""), 200),
        (scope(key, key), 401),
        (scope(http_version="1.0", **without_host), 200),
        (scope(http_version="1.1", **without_host), 400),
        (scope(http_version="2", **without_host), 400),
    ):
        start, _ = await server.request({**asked, "method": "GET"}, *body())
        assert start["status"] == status, asked


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("PETSTORE_DATABASE", "mysql://x", "expected sqlite:///relative.db"),
        ("PETSTORE_WORKERS", "2", "workers"),
        ("PETSTORE_WROKERS", "2", "no such environment variable: PETSTORE_WROKERS"),
    ],
)
async def test_invalid_settings_stop_the_start_with_a_message(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, said: str
) -> None:
    monkeypatch.setenv(name, value)
    told = await Server(AsgiApp()).start()
    assert told["type"] == "lifespan.startup.failed"
    assert said in told["message"]


async def test_a_websocket_is_closed_and_an_unknown_scope_is_refused(server: Server) -> None:
    start, _ = await server.request({"type": "websocket"}, {"type": "websocket.connect"})
    assert start == {"type": "websocket.close"}
    with pytest.raises(NotImplementedError, match="telnet"):
        await server.request({"type": "telnet"})


async def test_a_server_without_lifespan_gets_503_and_the_log_has_the_reason(
    caplog: pytest.LogCaptureFixture,
) -> None:
    start, _ = await Server(AsgiApp()).request(scope(method="GET"))
    assert start["status"] == 503
    assert "must use the lifespan protocol" in caplog.text
