"""One connection: requests out of bytes, their bodies, and when it ends."""

import gc
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack
from email.utils import parsedate_to_datetime
from threading import Event

import pytest

from petstore.http.connection import Connection, RequestBody
from petstore.http.messages import Request
from support.raw_socket import RawSocket
from support.served import CLOSING, GET, Echo, Served, in_memory, served
from support.waiting import within

HIDDEN = GET.replace(b"/", b"/hidden", 1)
CHUNKED = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.fixture
def app() -> Echo:
    """An application that echoes its requests."""
    return Echo()


@pytest.fixture
def free(app: Echo) -> Event:
    """Lets the application respond once it is set."""
    event = Event()
    app.is_free = event.is_set
    return event


@pytest.fixture
def server(app: Echo) -> Iterator[Served]:
    with served(app) as server:
        yield server


def post(body: bytes, *fields: bytes) -> bytes:
    length = b"Content-Length: %d\r\n" % len(body)
    return b"POST /x HTTP/1.1\r\nHost: a\r\n" + length + b"".join(fields) + b"\r\n" + body


def test_requests_are_parsed_the_same_in_any_segmentation(server: Served) -> None:
    chunks = b"5\r\na\r\n\r\n\r\n3\r\nbcd\r\n0\r\nX: y\r\n\r\n"
    data = b"\r\n\r\n" + post(b"hello", b"X-Long: value\r\n") + CHUNKED + chunks + GET
    for at in range(1, len(data)):
        with RawSocket(server.port) as connection:
            connection.send(data[:at])
            time.sleep(0.002)
            connection.send(data[at:])
            bodies = [connection.read_response().body for _ in range(3)]
        assert bodies == [b"POST /x? hello", b"POST /x? a\r\n\r\nbcd", b"GET /? "]


def test_only_a_body_that_arrives_with_its_headers_is_the_content_of_the_request(
    server: Served, app: Echo
) -> None:
    with RawSocket(server.port) as connection:
        for whole in (post(b"hello"), CHUNKED + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"):
            connection.send(whole)
            assert connection.read_response().body == b"POST /x? hello"
        connection.send(post(b"hello")[:-3])
        assert within(30, lambda: len(app.seen) == 3)
        connection.send(b"llo")
        assert connection.read_response().body == b"POST /x? hello"
    assert [each.content for each in app.seen] == [b"hello", b"hello", None]


@pytest.mark.parametrize(("version", "missing"), [(b"1.1", b"llo"), (b"1.0", b"hello")])
def test_a_client_that_has_begun_its_body_or_speaks_http_1_0_gets_no_100_continue(
    server: Served, app: Echo, version: bytes, missing: bytes
) -> None:
    data = post(b"hello", b"Expect: 100-continue\r\n").replace(b"1.1", version)
    with RawSocket(server.port) as connection:
        connection.send(data.removesuffix(missing))
        assert within(30, lambda: bool(app.seen))
        connection.send(missing)
        response = connection.read_response()
    assert (response.status, response.body) == (200, b"POST /x? hello")


def test_a_client_that_half_closes_gets_all_its_responses(server: Served) -> None:
    chunked = CHUNKED + b"5\r\nhello\r\n" * 1_000 + b"0\r\n\r\n"
    for data, count in [(GET * 50, 50), (GET + GET[:9], 1), (post(b"x") * 3, 3), (chunked, 0)]:
        with RawSocket(server.port) as connection:
            connection.send(data)
            connection.finish_sending()
            assert connection.rest().count(b"HTTP/1.1 200") == count


@pytest.mark.parametrize("last", [CLOSING, CHUNKED + b"0\r\nConnection: close\r\n\r\n"])
def test_the_connection_closes_after_a_request_with_connection_close(
    server: Served, app: Echo, last: bytes
) -> None:
    with RawSocket(server.port) as connection:
        connection.send(last + GET)
        response = connection.read_response()
        assert response.fields["connection"] == "close"
        assert connection.rest() == b""
    assert len(app.seen) == 1
    moment = parsedate_to_datetime(response.fields["date"])  # each response has one
    assert abs(moment.timestamp() - time.time()) < 5


def test_a_client_that_keeps_sending_still_gets_the_last_response(
    server: Served, app: Echo
) -> None:
    rubbish = b"x" * 4_000_000
    with RawSocket(server.port) as connection:
        connection.send(GET + b"\0" + rubbish)
        assert [connection.read_response().status for _ in range(2)] == [200, 400]
        connection.finish_sending()
        assert connection.rest() == b""
    assert len(app.seen) == 1


def test_requests_after_an_unfinished_one_wait_and_are_not_parsed(
    server: Served, app: Echo, free: Event
) -> None:
    before = in_memory(Request)
    with RawSocket(server.port) as connection:
        connection.send(GET * 1_500)
        assert within(30, lambda: len(app.seen) == 1)
        time.sleep(0.05)
        assert len(app.seen) == 1
        parsed = in_memory(Request) - before
        free.set()
        assert parsed < 10
        assert {connection.read_response().status for _ in range(1_500)} == {200}


def test_a_pipeline_yields_to_other_connections(app: Echo) -> None:
    app.size = 30_000
    with served(app) as server, ExitStack() as stack:
        greedy = GET.replace(b"/", b"/greedy", 1) * 5_000
        for _ in range(40):
            stack.enter_context(RawSocket(server.port)).send(greedy)
        patient = stack.enter_context(RawSocket(server.port))
        before = len(app.seen)
        patient.send(GET)
        assert patient.read_response().status == 200
        paths = [request.path for request in app.seen]
        assert paths.index("/") - before < 5_000


@pytest.mark.parametrize("status", [401, 429])
def test_only_new_and_rejected_clients_wait_for_their_turn(app: Echo, status: int) -> None:
    is_busy, is_free = Event(), Event()

    def hold_everything_up() -> bool:
        is_busy.set()
        return is_free.wait(30)

    with served(app) as server, ExitStack() as stack:
        busy, known, *others = (stack.enter_context(RawSocket(server.port)) for _ in range(42))
        for client in (known, *others[:20]):
            app.status = 200 if client is known else status
            client.send(HIDDEN)
            assert client.read_response().status == app.status
        assert within(30, lambda: server.connections == 42)
        app.seen.clear()
        app.is_free = hold_everything_up
        busy.send(HIDDEN)
        assert is_busy.wait(30)
        for client in others:
            client.send(HIDDEN)
        known.send(GET)
        is_free.set()
        for client in (*others, known):
            client.read_response()
    assert [request.path for request in app.seen].index("/") == 1


@pytest.mark.parametrize(
    "data", [GET, post(b"hello", b"Expect: 100-continue\r\n")[:-5], post(b"hello")[:-2]]
)
def test_a_client_that_has_disconnected_gets_no_response_and_leaves_nothing_in_memory(
    server: Served, app: Echo, free: Event, data: bytes
) -> None:
    app.reads_at_once = False
    with socket.create_connection(("127.0.0.1", server.port)) as caller:
        caller.sendall(data)
        assert within(30, lambda: len(app.seen) == 1)
        reset_when_closed = struct.pack("ii", 1, 0)
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset_when_closed)
    time.sleep(0.05)
    free.set()
    assert within(30, lambda: in_memory(Connection) == 0)
    with RawSocket(server.port) as connection:
        connection.send(GET)
        assert connection.read_response().status == 200


LATER = GET[:-2] + b"X: " + b"y" * 12_000


@pytest.mark.parametrize(
    ("begin", "rest", "status", "ending"),
    [
        (post(b"x" * 30_000)[:-22_000], b"x" * 8_000, 400, b""),
        (post(b"x" * 2_000)[:-1_000], b"x" * 1_000 + LATER, 200, b" " + b"x" * 2_000),
        (GET, LATER, 200, b"GET /? "),
    ],
    ids=["a body", "what follows a body", "what follows a request"],
)
def test_what_is_dropped_for_lack_of_memory_ends_the_connection_after_its_response(
    app: Echo, free: Event, begin: bytes, rest: bytes, status: int, ending: bytes
) -> None:
    app.reads_at_once = status == 200
    with served(app, buffer_bytes=10_000) as server, RawSocket(server.port) as connection:
        connection.send(begin)
        assert within(30, lambda: bool(app.seen))
        time.sleep(0.05)
        connection.send(rest)
        time.sleep(0.05)
        free.set()
        response = connection.read_response()
        assert (response.status, response.fields["connection"]) == (status, "close")
        assert response.body.endswith(ending)
        assert connection.rest() == b""


@pytest.mark.parametrize(("of_head", "of_body"), [(14_000, 0), (1, 14_000)])
def test_headers_and_received_body_parts_count_until_the_request_is_complete(
    app: Echo, of_head: int, of_body: int
) -> None:
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\nX: %b\r\n\r\n"
    with (
        served(app, buffer_bytes=20_000) as server,
        RawSocket(server.port) as first,
        RawSocket(server.port) as second,
    ):
        first.send(head % (of_body + 10, b"y" * of_head) + b"z" * of_body)
        assert within(30, lambda: len(app.seen) == 1)
        second.send(head % (10, b"y" * 12_000))
        response = first.read_response()
        assert (response.status, response.fields["connection"]) == (400, "close")
        second.send(b"z" * 10)
        assert second.read_response().status == 200


def test_the_size_limit_of_headers_is_per_request_in_a_pipeline(server: Served) -> None:
    with RawSocket(server.port) as connection:
        connection.send(GET * 1_000 + GET[:-2] + b"X: ")
        for _ in range(3):
            connection.send(b"y" * 5_000)
            time.sleep(0.02)
        connection.send(b"\r\n\r\n")
        assert {connection.read_response().status for _ in range(1_001)} == {200}


def test_a_body_that_is_cut_off_is_freed_without_the_garbage_collector(
    server: Served, app: Echo
) -> None:
    gc.collect()
    gc.disable()
    try:
        with RawSocket(server.port) as connection:
            connection.send(post(b"x" * 1024)[:-1])
            assert within(30, lambda: app.seen)
        assert within(30, lambda: app.failures == ["it ended early"])
        assert within(5, lambda: not any(isinstance(one, RequestBody) for one in gc.get_objects()))
    finally:
        gc.enable()


def is_ahead() -> bool:
    """Return whether a connection reads no more, even in its turn, until its body is taken."""
    connections = (one for one in gc.get_objects() if isinstance(one, Connection))
    return any(one._is_paused and not one.awaits_turn for one in connections)  # noqa: SLF001


@pytest.mark.parametrize(
    "data",
    [
        CHUNKED + (b"400\r\n" + b"x" * 1024 + b"\r\n") * 150 + b"0\r\n\r\n",
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 153600\r\n\r\n" + b"x" * 153_600,
    ],
    ids=["chunks", "length"],
)
def test_a_body_is_not_read_ahead_of_the_application(
    server: Served, app: Echo, free: Event, data: bytes
) -> None:
    app.reads_at_once = False
    with RawSocket(server.port) as connection:
        connection.send(data)
        assert within(30, lambda: app.seen and is_ahead())
        free.set()
        assert connection.read_response().body == b"POST /x? " + b"x" * 153_600


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"ZZ\r\n", "its framing is broken"),
        (b"5\r\nhello\r\nZ", "its framing is broken"),
        (b"5\rX", "its framing is broken"),
        (b"5\r\nhel", "it ended early"),
        (b"5\r\nhello\r", "it ended early"),
    ],
)
def test_the_first_reason_for_an_incomplete_body_is_reported(
    server: Served, app: Echo, body: bytes, reason: str
) -> None:
    with RawSocket(server.port) as connection:
        connection.send(CHUNKED + body)
        connection.finish_sending()
        assert connection.read_response().status == 400
        assert connection.rest() == b""
    assert within(30, lambda: server.connections == 0)
    assert app.failures == [reason]


def test_an_application_error_closes_the_connection(
    server: Served, app: Echo, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> bool:
        raise RuntimeError

    app.is_free = fail
    with RawSocket(server.port) as connection:
        connection.send(GET)
        assert connection.rest() == b""
    assert "a response was not sent" in caplog.text


def test_upgrade_requests_are_declined_in_order_and_their_bodies_are_read(server: Served) -> None:
    chunked = b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    upgrade = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"
    chunks = b"POST /y HTTP/1.1\r\nHost: a\r\n" + upgrade + chunked
    with RawSocket(server.port) as connection:
        connection.send((post(b"hello", upgrade) + post(b"", upgrade) + chunks + GET) * 200)
        bodies = [connection.read_response().body for _ in range(800)]
    assert bodies == [b"POST /x? hello", b"POST /x? ", b"POST /y? abc", b"GET /? "] * 200
