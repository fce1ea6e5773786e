"""A service that sends the responses of a test on a real socket, and records its requests."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

HANG_UP = b""
"""Instead of a response: the connection is closed."""

SILENCE = None
"""Instead of a response, or after the beginning of one: nothing, until the test is over."""


class Asked(NamedTuple):
    """One request as it arrived; field names in lower case."""

    method: str
    target: str
    fields: dict[str, str]
    body: bytes


@dataclass
class OddService:
    """Sends the next of ``responses`` to each request, on a new connection."""

    listener: socket.socket
    responses: tuple[bytes | tuple[bytes, None] | None, ...]
    url: str
    asked: list[Asked] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def serve(self) -> None:
        for left, response in zip(
            reversed(range(len(self.responses))), self.responses, strict=True
        ):
            try:
                connection, _ = self.listener.accept()
            except OSError:  # the test is over
                return
            with connection, suppress(ConnectionError):
                self.asked.append(_read(connection))
                if not left:  # before its response lets the client retry
                    self.listener.close()
                if isinstance(response, bytes):
                    connection.sendall(response)
                    continue
                connection.sendall(b"" if response is SILENCE else response[0])
                self.over.wait()


@contextmanager
def odd_service(*responses: bytes | tuple[bytes, None] | None) -> Iterator[OddService]:
    """Run a service that sends these responses, one after the other."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        service = OddService(listener, responses, url)
        thread = threading.Thread(target=service.serve)
        thread.start()
        try:
            yield service
        finally:
            service.over.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def response(status: int, body: Any = None, **fields: object) -> bytes:
    """Return a response: ``body`` as it is if it is bytes, else as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} x", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def error(status: int, code: str = "some_code", message: str = "no", **fields: object) -> bytes:
    """Return a response with the Error body of the interface."""
    body = {"code": code, "message": message, "status": status}
    return response(status, body, **({"X_RateLimit_Limit": 60} | fields))


def _read(connection: socket.socket) -> Asked:
    received = b""
    while b"\r\n\r\n" not in received:
        received += _more(connection)
    head, _, body = received.partition(b"\r\n\r\n")
    request_line, *lines = head.decode("latin-1").split("\r\n")
    fields = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}
    while len(body) < int(fields.get("content-length", "0")):
        body += _more(connection)
    method, target, _ = request_line.split(" ")
    return Asked(method, target, fields, body)


def _more(connection: socket.socket) -> bytes:
    data = connection.recv(65536)
    if not data:
        raise ConnectionResetError
    return data
