"""Sockets for threads, whose timeouts are deadlines.

``httpcore2`` hands the timeouts of a request on to the operations of its socket as they are. So
with deadlines instead of seconds, each operation gets what is left.
"""

import socket
import ssl
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from httpcore2 import (
    SOCKET_OPTION,
    ConnectTimeout,
    NetworkBackend,
    NetworkStream,
    ReadTimeout,
    SyncBackend,
    TimeoutException,
    WriteTimeout,
)

from petstore_client._lifetime import Lifetime


@dataclass(frozen=True)
class Deadline:
    """A moment of the monotonic clock by which a request ends, or earlier with its lifetime."""

    moment: float
    lifetime: Lifetime

    def left(self, error: type[TimeoutException]) -> float:
        """Return the seconds to the moment.

        Raises:
            TimeoutException: it has passed.
        """
        seconds = self.moment - time.monotonic()
        if seconds <= 0:
            msg = "timed out"
            raise error(msg)
        return seconds


class DeadlineBackend(NetworkBackend):
    """Opens connections, whose timeouts are deadlines."""

    def __init__(self) -> None:
        self._backend = SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: Any = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> NetworkStream:
        """Connect before the deadline ``timeout``."""
        seconds = timeout.left(ConnectTimeout)
        stream = self._backend.connect_tcp(host, port, seconds, local_address, socket_options)
        return _DeadlineStream(stream)


class _DeadlineStream(NetworkStream):
    def __init__(self, stream: NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: Any = None) -> bytes:
        with timeout.lifetime.interruptible(self._shut_down):
            return self._stream.read(max_bytes, timeout.left(ReadTimeout))

    def write(self, buffer: bytes, timeout: Any = None) -> None:
        with timeout.lifetime.interruptible(self._shut_down):
            self._stream.write(buffer, timeout.left(WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: Any = None,
    ) -> NetworkStream:
        seconds = timeout.left(ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _shut_down(self) -> None:
        """End what another thread reads or writes; to close the socket would not."""
        with suppress(OSError):  # the service has closed it
            # Not that of an SSLSocket, which forgets how to read while somebody reads.
            socket.socket.shutdown(self._stream.get_extra_info("socket"), socket.SHUT_RDWR)
