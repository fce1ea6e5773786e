"""Load on one address: so many connections, each sending its next request after the response."""

import selectors
import socket
import time
from collections.abc import Iterator
from typing import NamedTuple


class Load(NamedTuple):
    """The result of a load: responses, seconds, the latency of each in seconds, and bytes."""

    responses: int
    seconds: float
    latencies: list[float]
    received: int

    @property
    def rate(self) -> float:
        """Responses per second."""
        return self.responses / self.seconds

    def percentile(self, share: float) -> float:
        """The latency within which this share of the responses arrived."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class _Connection:
    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.received_before = 0
        self.sent_at = 0.0

    def send(self, request: bytes) -> None:
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def receive(self, expected_status: bytes) -> bool:
        """Read what has arrived; return whether the response is complete."""
        self.received += self.socket.recv(65536)
        head, separator, body = self.received.partition(b"\r\n\r\n")
        if not separator:
            return False
        assert head[9:12] == expected_status, head  # noqa: S101 - a bench of errors is no bench
        start = head.index(b"content-length: ") + 16
        length = int(head[start:].partition(b"\r")[0])
        if len(body) < length:
            return False
        self.received_before += len(self.received)
        self.received = b""
        return True


def put_load(
    port: int, requests: Iterator[bytes], expected_status: int, connections: int, seconds: float
) -> Load:
    """Send one of ``requests`` after the other on ``connections`` for ``seconds``."""
    selector = selectors.DefaultSelector()
    status = str(expected_status).encode()
    for _ in range(connections):
        connection = _Connection(port)
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.send(next(requests))
    latencies: list[float] = []
    started = time.perf_counter()
    deadline = started + seconds
    now = started
    while now < deadline:
        for key, _ in selector.select():
            connection = key.data
            if connection.receive(status):
                now = time.perf_counter()
                latencies.append(now - connection.sent_at)
                connection.send(next(requests))
    received = 0
    for key in list(selector.get_map().values()):
        received += key.data.received_before
        key.data.socket.close()
    return Load(len(latencies), now - started, latencies, received)
