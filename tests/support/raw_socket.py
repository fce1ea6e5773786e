"""A client that sends exactly the bytes of a test, and reads the raw responses."""

import json
import socket
from contextlib import suppress
from select import select
from typing import Any, NamedTuple, Self


class ConnectionEnded(Exception):
    """The service closed the connection where a response was expected."""


class RawResponse(NamedTuple):
    status: int
    fields: dict[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)


class RawSocket:
    def __init__(self, port: int, seconds: float = 30) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), seconds)
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._socket.close()

    def is_silent(self, seconds: float = 0.3) -> bool:
        return not select([self._socket], [], [], seconds)[0]

    def send(self, data: bytes) -> None:
        """Send bytes. If the service closed the connection, reading the response shows it."""
        with suppress(BrokenPipeError, ConnectionResetError):
            self._socket.sendall(data)

    def begin_post(self, token: str) -> None:
        self.send(
            b"POST /v1/pets HTTP/1.1\r\nHost: petstore\r\nExpect: 100-continue\r\n"
            + f"Authorization: Bearer {token}\r\nContent-Length: 9\r\n\r\n".encode()
        )
        assert self.read_response().status == 100

    def finish_sending(self) -> None:
        self._socket.shutdown(socket.SHUT_WR)

    def read_response(self, *, to_head: bool = False) -> RawResponse:
        """Read one response; with ``to_head`` the response to a HEAD, which has no body.

        Raises:
            ConnectionEnded: the connection was closed instead.
        """
        while b"\r\n\r\n" not in self._received:
            self._receive()
        head, _, self._received = self._received.partition(b"\r\n\r\n")
        status_line, *lines = head.decode("latin-1").split("\r\n")
        parts = (line.partition(":") for line in lines)
        fields = {name.lower(): value.strip() for name, _, value in parts}
        length = 0 if to_head else int(fields.get("content-length", "0"))
        while len(self._received) < length:
            self._receive()
        body, self._received = self._received[:length], self._received[length:]
        return RawResponse(int(status_line.split(" ")[1]), fields, body)

    def rest(self) -> bytes:
        try:
            while True:
                self._receive()
        except ConnectionEnded:
            rest, self._received = self._received, b""
            return rest

    def _receive(self) -> None:
        try:
            data = self._socket.recv(65536)
        except ConnectionResetError:
            data = b""
        if not data:
            raise ConnectionEnded
        self._received += data
