"""A receiver of webhooks on a real socket."""

from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain, repeat
from threading import Thread
from typing import Any, NamedTuple


class Delivery(NamedTuple):
    """A request as it arrived; names of ``headers`` in lower case."""

    target: str
    headers: dict[str, str]
    body: bytes


class Receiving(ThreadingHTTPServer):
    """Responds with each of ``statuses``, then with 200, and keeps what it got."""

    def __init__(self, *statuses: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.statuses = chain(statuses, repeat(200))
        self.deliveries: list[Delivery] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Receiving

    def do_POST(self) -> None:
        headers = {name.lower(): value for name, value in self.headers.items()}
        body = self.rfile.read(int(headers["content-length"]))
        self.server.deliveries.append(Delivery(self.path, headers, body))
        self.send_response(next(self.server.statuses))
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Say nothing."""


@contextmanager
def receiving(*statuses: int) -> Iterator[Receiving]:
    with Receiving(*statuses) as receiver:
        thread = Thread(target=receiver.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()
