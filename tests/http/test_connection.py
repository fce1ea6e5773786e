"""One connection: requests out of bytes, responses, and when it ends."""

import gc
import socket
import struct
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from threading import Event

import pytest

from petstore.http.connection import Connection, RequestBody
from petstore.http.messages import Request
from support.raw_socket import ConnectionEnded, RawSocket
from support.served import Echo, Served, served
from support.waiting import within

GET = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n"
HIDDEN = GET.replace(b"/", b"/hidden", 1)
CLOSING = GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
CHUNKED = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: h2c\r\n"


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


def ask(server: Served, *data: bytes) -> bytes:
    with RawSocket(server.port) as connection:
        for piece in data:
            connection.send(piece)
            time.sleep(0.01)
        return connection.read_response().body


@contextmanager
def slow_caller(server: Served, room: int) -> Iterator[socket.socket]:
    """Connect with ``room`` for so many bytes that have come and not been read."""
    with socket.socket() as caller:
        caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, room)
        caller.connect(("127.0.0.1", server.port))
        caller.settimeout(30)
        yield caller


def test_a_request_is_parsed_the_same_in_any_segmentation(server: Served) -> None:
    data = post(b"hello", b"X-Long: value\r\n")
    for at in range(1, len(data), 7):
        assert ask(server, data[:at], data[at:]) == b"POST /x? hello"


def test_empty_lines_before_a_request_are_ignored_in_any_segmentation(server: Served) -> None:
    data = b"\r\n\r\n" + GET
    for at in range(1, 6):
        assert ask(server, data[:at], data[at:]) == b"GET /? "


def test_a_body_that_arrives_with_its_headers_is_the_content_of_the_request(
    server: Served, app: Echo
) -> None:
    chunked = b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    ask(server, post(b"hello"))
    ask(server, chunked + b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n")
    assert [(one.content, one.body) for one in app.seen] == [(b"hello", "read")] * 2


def test_an_incomplete_body_is_received_in_pieces(server: Served, app: Echo) -> None:
    with RawSocket(server.port) as connection:
        connection.send(post(b"hello")[:-3])
        assert within(30, lambda: bool(app.seen))
        connection.send(b"llo")
        assert connection.read_response().body == b"POST /x? hello"
    assert app.seen[0].content is None


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


def test_a_cached_request_is_not_recognized_within_another_request(server: Served) -> None:
    assert ask(server, GET) == ask(server, GET) == b"GET /? "
    assert ask(server, post(GET)[: -len(GET)], GET) == b"POST /x? " + GET
    assert ask(server, b"GET /y HTTP/1.1\r\nHost: a\r\nX: ", GET).startswith(b"GET /y?")


@pytest.mark.parametrize(
    "head",
    [
        b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(HIDDEN),
        b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n" % len(HIDDEN),
    ],
)
def test_a_body_with_the_bytes_of_an_earlier_get_is_not_a_request(
    server: Served, app: Echo, head: bytes
) -> None:
    for _ in range(4):
        with RawSocket(server.port) as connection:
            connection.send(GET + head)
            assert connection.read_response().body == b"GET /? "
            connection.send(HIDDEN)
            connection.finish_sending()
            connection.rest()
    assert {request.path for request in app.seen} == {"/", "/x"}


@pytest.mark.parametrize(
    ("target", "seen"),
    [
        (b"/a?b=c?d", b"/a?b=c?d"),
        (b"/a", b"/a?"),
        (b"http://other/a?b", b"/a?b"),
        (b"http://other", b"/?"),
        (b"http://other?b", b"/?b"),
        (b"/a//b%2F..", b"/a//b%2F..?"),
    ],
)
def test_a_target_is_a_path_and_a_query(server: Served, target: bytes, seen: bytes) -> None:
    assert ask(server, b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n" % target) == b"GET %s " % seen


def test_a_client_that_sends_only_blank_lines_is_disconnected(app: Echo) -> None:
    started = time.monotonic()
    with served(app, seconds=0.3) as server, RawSocket(server.port, seconds=0.1) as connection:
        while time.monotonic() - started < 20:
            connection.send(b"\r\n")
            try:
                assert connection.rest() == b""
                break
            except TimeoutError:
                continue
    assert time.monotonic() - started < 20


def test_a_client_that_half_closes_gets_all_its_responses(server: Served) -> None:
    chunked = CHUNKED + b"5\r\nhello\r\n" * 1_000 + b"0\r\n\r\n"
    for data, count in [(GET * 50, 50), (GET + GET[:9], 1), (post(b"x") * 3, 3), (chunked, 0)]:
        with RawSocket(server.port) as connection:
            connection.send(data)
            connection.finish_sending()
            assert connection.rest().count(b"HTTP/1.1 200") == count


@pytest.mark.parametrize(
    "beginning",
    [b"\x16\x03\x01", b"GET / HTTP/1.1\nHost: a\n\n", b"GET / HTTP/1.1\r\nHost: a\n"],
)
def test_invalid_headers_are_refused_before_they_are_complete(
    server: Served, beginning: bytes
) -> None:
    with RawSocket(server.port) as connection:
        connection.send(beginning)
        assert connection.read_response().status == 400


def test_an_upgrade_request_is_declined_and_its_body_is_read(server: Served) -> None:
    with RawSocket(server.port) as connection:
        connection.send(post(b"hello", UPGRADE))
        connection.send(post(b"", UPGRADE))
        chunked = b"Transfer-Encoding: chunked\r\n"
        connection.send(b"POST /y HTTP/1.1\r\nHost: a\r\n" + UPGRADE + chunked + b"\r\n")
        connection.send(b"3\r\nabc\r\n0\r\n\r\n")
        connection.send(GET)
        bodies = [connection.read_response().body for _ in range(4)]
    assert bodies == [b"POST /x? hello", b"POST /x? ", b"POST /y? abc", b"GET /? "]


def test_the_connection_closes_after_a_request_with_connection_close(
    server: Served, app: Echo
) -> None:
    with RawSocket(server.port) as connection:
        connection.send(GET.replace(b"Host", b"Connection: close\r\nHost") + GET)
        assert connection.read_response().fields["connection"] == "close"
        assert connection.rest() == b""
    assert len(app.seen) == 1


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


@pytest.mark.parametrize("size", [15_000, 17_000])
@pytest.mark.parametrize("pieces", [1, 3])
def test_the_size_of_the_headers_is_limited(server: Served, size: int, pieces: int) -> None:
    line = b"X: " + b"y" * size + b"\r\n"
    data = GET.replace(b"Host", line + b"Host")
    with RawSocket(server.port) as connection:
        for start in range(0, len(data), len(data) // pieces + 1):
            connection.send(data[start : start + len(data) // pieces + 1])
            time.sleep(0.02)
        assert connection.read_response().status == (200 if size == 15_000 else 431)


def test_a_pipelined_request_waits_for_the_previous_response(
    server: Served, app: Echo, free: Event
) -> None:
    with RawSocket(server.port) as connection:
        connection.send(GET * 3)
        assert within(30, lambda: len(app.seen) == 1)
        time.sleep(0.05)
        assert len(app.seen) == 1
        free.set()
        assert [connection.read_response().status for _ in range(3)] == [200] * 3


def in_memory(kind: type) -> int:
    gc.collect()
    return sum(isinstance(one, kind) for one in gc.get_objects())


def test_requests_after_an_unfinished_one_are_not_parsed(
    server: Served, app: Echo, free: Event
) -> None:
    before = in_memory(Request)
    with RawSocket(server.port) as connection:
        connection.send(GET * 1_500)
        assert within(30, lambda: len(app.seen) == 1)
        time.sleep(0.05)
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


def test_a_large_body_is_not_read_ahead_of_the_application(server: Served) -> None:
    body = b"x" * 3_000_000
    assert ask(server, post(body)) == b"POST /x? " + body


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
    assert ask(server, GET) == b"GET /? "


def test_a_client_that_does_not_read_responses_is_disconnected(app: Echo) -> None:
    app.size = 50_000
    with (
        served(app, seconds=0.2) as server,
        slow_caller(server, 4096) as caller,
        pytest.raises(ConnectionError),
    ):
        caller.sendall(GET * 1_000_000)


def test_a_connection_beyond_the_budget_of_unread_responses_is_closed(app: Echo) -> None:
    app.size = 60_000
    with served(app, buffer_bytes=10_000) as server, slow_caller(server, 4096) as caller:
        caller.sendall(GET * 100)
        assert within(30, lambda: app.seen and in_memory(Connection) == 0)
        received = b"".join(iter(lambda: caller.recv(65536), b""))
    assert len(received) < 100 * app.size


@contextmanager
def slow_callers(server: Served) -> Iterator[list[socket.socket]]:
    """Ten clients of large responses, of which a connection holds one piece apart."""
    with ExitStack() as opened:
        callers = [opened.enter_context(slow_caller(server, 4096)) for _ in range(10)]
        for caller in callers:
            caller.sendall(CLOSING)
        yield callers


def received_by(caller: socket.socket) -> int:
    """Return how many bytes a client gets of its response."""
    caller.sendall(CLOSING)
    return sum(map(len, iter(partial(caller.recv, 1 << 20), b"")))


def test_large_responses_of_connections_count_as_a_whole(app: Echo) -> None:
    app.size = 2_000_000
    limits = {"buffer_bytes": 4_000_000, "seconds": 60}
    with served(app, **limits) as server, slow_callers(server):
        assert within(30, lambda: len(app.seen) == 10 and in_memory(Connection) <= 4)


def test_large_responses_to_clients_that_read_are_not_cut_off(app: Echo) -> None:
    app.size, app.is_free = 100_000, lambda: len(app.seen) == 20  # all at the same time
    with served(app, buffer_bytes=1_000_000) as server, ExitStack() as opened:
        callers = [opened.enter_context(slow_caller(server, 1 << 20)) for _ in range(20)]
        with ThreadPoolExecutor(20) as pool:
            sizes = [*pool.map(received_by, callers)]
    assert min(sizes) > app.size


def test_connections_hold_a_shared_response_together(app: Echo) -> None:
    app.size, app.is_shared = 2_000_000, True
    with served(app, buffer_bytes=4_000_000) as server, slow_callers(server) as callers:
        assert within(30, lambda: len(app.seen) == 10)
        received = [b"".join(iter(partial(each.recv, 65536), b"")) for each in callers]
    assert all(one.endswith(b"." * app.size) for one in received)


@pytest.mark.parametrize("size", [300_000, 5_000_000])
def test_a_response_larger_than_the_budget_arrives_completely(app: Echo, size: int) -> None:
    app.size = size
    with served(app, buffer_bytes=200_000) as server, slow_caller(server, 4096) as caller:
        caller.sendall(CLOSING)
        assert within(30, lambda: bool(app.seen))
        time.sleep(0.1)
        received = b"".join(iter(lambda: caller.recv(65536), b""))
    assert received.endswith(b"GET /? " + b"." * app.size)


def test_a_body_dropped_for_lack_of_memory_is_not_kept(app: Echo) -> None:
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
    app.is_free, app.reads_at_once = (lambda: False), False
    with served(app, buffer_bytes=30_000) as server, RawSocket(server.port) as connection:
        connection.send(head + b"x" * 20_000)
        assert within(30, lambda: bool(app.seen))
        connection.send(b"x" * 20_000)
        time.sleep(0.05)
        app.is_free = lambda: True
        response = connection.read_response()
        assert (response.status, response.fields["connection"]) == (400, "close")


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


def test_a_complete_body_stays_complete_if_later_data_is_dropped(app: Echo) -> None:
    head = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 2000\r\n\r\n"
    with served(app, buffer_bytes=6_000) as server, RawSocket(server.port) as connection:
        connection.send(head + b"x" * 1_000)
        assert within(30, lambda: bool(app.seen))
        time.sleep(0.05)
        connection.send(b"x" * 1_000 + GET[:-2] + b"X: " + b"y" * 12_000)
        response = connection.read_response()
        assert (response.status, response.fields["connection"]) == (200, "close")
        assert response.body.endswith(b" " + b"x" * 2_000)


def test_a_pipeline_dropped_for_lack_of_memory_ends_after_its_response(app: Echo) -> None:
    app.is_free = lambda: False
    with served(app, buffer_bytes=10_000) as server, RawSocket(server.port) as connection:
        connection.send(GET)
        assert within(30, lambda: bool(app.seen))
        connection.send(GET[:-2] + b"X: " + b"y" * 12_000)
        time.sleep(0.05)
        app.is_free = lambda: True
        assert connection.read_response().fields["connection"] == "close"
        assert connection.rest() == b""


def test_a_client_that_reads_slowly_gets_every_response(server: Served, app: Echo) -> None:
    app.size = 60_000
    with RawSocket(server.port) as connection:
        connection.send(GET * 100)
        time.sleep(0.1)
        assert {len(connection.read_response().body) for _ in range(100)} == {
            len(b"GET /? ") + 60_000
        }


def test_every_response_has_a_date(server: Served) -> None:
    with RawSocket(server.port) as connection:
        connection.send(GET)
        told = connection.read_response().fields["date"]
    moment = time.mktime(time.strptime(told, "%a, %d %b %Y %H:%M:%S GMT")) - time.timezone
    assert abs(moment - time.time()) < 5


def test_connect_opens_no_tunnel(server: Served) -> None:
    data = b"CONNECT example.org:80 HTTP/1.1\r\nHost: a\r\n\r\n"
    assert ask(server, data) == b"CONNECT example.org:80? "


def test_a_stopping_server_finishes_only_running_requests(app: Echo, free: Event) -> None:
    with (
        served(app, seconds=60) as server,
        RawSocket(server.port) as idle,
        RawSocket(server.port) as busy,
    ):
        idle.send(GET[:10])
        busy.send(GET)
        assert within(30, lambda: len(app.seen) == 1)
        server.stop()
        assert idle.rest() == b""
        free.set()
        assert busy.read_response().status == 200
        server.thread.join(30)
        assert not server.thread.is_alive()
        with pytest.raises((ConnectionEnded, ConnectionError)):
            RawSocket(server.port).read_response()


@pytest.mark.parametrize("size", [60_000, 300_000])
def test_a_refusal_is_sent_once_however_slowly_it_is_read(app: Echo, size: int) -> None:
    app.size = size
    with served(app) as server, slow_caller(server, 2048) as caller:
        caller.sendall(GET * 20 + b"\0bad")
        time.sleep(0.3)
        received = b"".join(iter(lambda: caller.recv(65536), b""))
    assert received.count(b"HTTP/1.1 200") == 20
    assert received.count(b"HTTP/1.1 400") == 1


def test_a_client_that_reads_slowly_but_steadily_is_not_disconnected(app: Echo) -> None:
    app.size = 20_000_000
    with served(app, seconds=0.6) as server, slow_caller(server, 65536) as caller:
        caller.sendall(GET)
        count = 0
        while count < 20_000_000:
            piece = caller.recv(200_000)
            assert piece
            count += len(piece)
            time.sleep(0.01)


def test_a_client_that_reads_from_the_kernel_is_not_disconnected(app: Echo) -> None:
    app.size = 100_000
    with served(app, seconds=0.4) as server, slow_caller(server, 4096) as caller:
        caller.sendall(GET * 3)
        count = 0
        while count < 3 * 100_000:
            # The first bytes so slowly that the kernel takes no more from us for over 0.4 s.
            piece = caller.recv(600 if count < 60_000 else 6_000)
            assert piece
            count += len(piece)
            time.sleep(0.01)


def test_the_size_limit_of_headers_is_per_request_in_a_pipeline(server: Served) -> None:
    with RawSocket(server.port) as connection:
        connection.send(GET * 1_000 + GET[:-2] + b"X: ")
        for _ in range(3):
            connection.send(b"y" * 5_000)
            time.sleep(0.02)
        connection.send(b"\r\n\r\n")
        assert {connection.read_response().status for _ in range(1_001)} == {200}


def test_a_chunked_body_ends_at_the_same_place_in_any_segmentation(server: Served) -> None:
    inner = b"5\r\na\r\n\r\n\r\n3\r\nbcd\r\n0\r\n"
    data = CHUNKED + inner + b"X: y\r\n\r\n" + GET
    for at in range(len(CHUNKED), len(data), 1):
        with RawSocket(server.port) as connection:
            connection.send(data[:at])
            time.sleep(0.002)
            connection.send(data[at:])
            assert connection.read_response().body == b"POST /x? a\r\n\r\nbcd"
            assert connection.read_response().body == b"GET /? "


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


def test_a_chunked_body_is_not_read_ahead_of_the_application(
    server: Served, app: Echo, free: Event
) -> None:
    app.reads_at_once = False
    chunks = b"400\r\n" + b"x" * 1024 + b"\r\n"
    with RawSocket(server.port) as connection:
        connection.send(CHUNKED + chunks * 150 + b"0\r\n\r\n")
        assert within(30, lambda: app.seen and is_ahead())
        free.set()
        assert connection.read_response().body.count(b"x") == 150 * 1024 + 1


def test_the_segmentation_of_a_chunk_does_not_count_as_framing(server: Served) -> None:
    with RawSocket(server.port) as connection:
        connection.send(CHUNKED + b"bb8\r\n")
        for _ in range(3_000):
            connection.send(b"x")
        connection.send(b"\r\n0\r\n\r\n" + GET)
        assert connection.read_response().body == b"POST /x? " + b"x" * 3_000
        assert connection.read_response().status == 200


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"ZZ\r\n", "its framing is broken"),
        (b"ZZ", "its framing is broken"),
        (b"5\r\nhelloX", "its framing is broken"),
        (b"5\r\nhello\r\nZ", "its framing is broken"),
        (b"5\rX", "its framing is broken"),
        (b"5\r\nhel", "it ended early"),
        (b"5\r\nhello\r\n5;a", "it ended early"),
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
    assert app.failures == [reason]


def test_a_trailer_can_close_the_connection(server: Served) -> None:
    with RawSocket(server.port) as connection:
        connection.send(b"POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        connection.send(b"0\r\nConnection: close\r\n\r\n")
        assert connection.read_response().fields["connection"] == "close"
        assert connection.rest() == b""


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


def test_the_last_response_before_a_stop_is_not_cut_off(app: Echo, free: Event) -> None:
    app.size = 300_000
    with served(app) as server, RawSocket(server.port) as connection:
        connection.send(GET * 3_000)
        assert within(30, lambda: len(app.seen) == 1)
        server.stop()
        free.set()
        assert len(connection.read_response().body) > 300_000


def test_a_slow_reader_gets_the_responses_it_has_begun_to_read_during_a_stop(app: Echo) -> None:
    app.size = 60_000
    received = b""
    with (
        served(app, seconds=5) as server,
        RawSocket(server.port) as idle,
        slow_caller(server, 4096) as caller,
    ):
        caller.settimeout(0.3)
        with suppress(TimeoutError):
            caller.sendall(GET * 20_000)
        server.stop()
        assert idle.rest() == b""  # the server has ended what it could end at once
        caller.settimeout(30)
        while piece := caller.recv(65536):
            received += piece
            time.sleep(0.005)
    assert received.count(b"HTTP/1.1 200") == received.count(b"." * 60_000) > 0


def test_pipelined_upgrade_requests_are_declined_in_order(server: Served) -> None:
    with RawSocket(server.port) as connection:
        connection.send(post(b"hello", UPGRADE) * 700)
        assert [connection.read_response().body for _ in range(700)] == [b"POST /x? hello"] * 700


def test_a_client_that_stops_within_a_body_frees_its_memory(app: Echo) -> None:
    with served(app, connections=1, seconds=60) as server:
        for _ in range(3):
            with RawSocket(server.port) as connection:
                connection.send(post(b"hello")[:-1])
                connection.finish_sending()
                assert connection.read_response().status == 400
