"""A service that sends the responses of a test on a real socket, and records its requests."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import parse_headers, responses
from itertools import chain, repeat
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


class OddService(NamedTuple):
    url: str
    asked: list[Asked]


@contextmanager
def odd_service(
    *told: bytes | tuple[bytes, None] | None, then: bytes | None = None, port: int = 0
) -> Iterator[OddService]:
    """Run a service that sends these responses, each on a new connection, ``then`` one for ever."""
    over = threading.Event()

    def serve() -> None:
        for number, response in enumerate(chain(told, repeat(then) if then else ()), 1):
            try:
                connection, _ = listener.accept()
            except OSError:  # the test is over
                return
            with connection, suppress(ConnectionError):
                service.asked.append(_read(connection))
                if number == len(told) and not then:  # before its response lets the client retry
                    listener.close()
                if isinstance(response, bytes):
                    connection.sendall(response)
                    continue
                connection.sendall(b"" if response is SILENCE else response[0])
                over.wait()

    with socket.create_server(("127.0.0.1", port)) as listener:
        service = OddService(f"http://127.0.0.1:{listener.getsockname()[1]}", [])
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield service
        finally:
            over.set()
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            thread.join()


def response(status: int, body: Any = None, **fields: object) -> bytes:
    """Return a response: ``body`` as it is if it is bytes, else as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [
        f"HTTP/1.1 {status} {responses.get(status, 'x')}",
        f"Content-Length: {len(content)}",
        "Connection: close",
    ]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def error(status: int, code: str = "some_code", message: str = "no", **fields: object) -> bytes:
    body = {"code": code, "message": message, "status": status}
    return response(status, body, **({"X_RateLimit_Limit": 60} | fields))


def _read(connection: socket.socket) -> Asked:
    with connection.makefile("rb") as file:
        if not (line := file.readline()):
            raise ConnectionResetError
        method, target, _ = line.decode("latin-1").split(" ")
        fields = {name.lower(): value for name, value in parse_headers(file).items()}
        return Asked(method, target, fields, file.read(int(fields.get("content-length", "0"))))
