"""Sockets for threads, whose timeouts are moments of the monotonic clock.

``httpcore2`` hands the timeouts of a request on to the operations of its socket as they are. So
with moments instead of seconds, each operation gets what is left.
"""

import ssl
import time
from collections.abc import Iterable
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


def _left(moment: float | None, error: type[TimeoutException]) -> float:
    """Return the seconds to a moment, which every request has.

    Raises:
        TimeoutException: it has passed.
    """
    seconds = (moment or 0) - time.monotonic()
    if seconds <= 0:
        msg = "timed out"
        raise error(msg)
    return seconds


class DeadlineBackend(NetworkBackend):
    """Opens connections, whose timeouts are moments."""

    def __init__(self) -> None:
        self._backend = SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[SOCKET_OPTION] | None = None,
    ) -> NetworkStream:
        """Connect before the moment ``timeout``."""
        seconds = _left(timeout, ConnectTimeout)
        stream = self._backend.connect_tcp(host, port, seconds, local_address, socket_options)
        return _DeadlineStream(stream)


class _DeadlineStream(NetworkStream):
    def __init__(self, stream: NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._stream.read(max_bytes, _left(timeout, ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._stream.write(buffer, _left(timeout, WriteTimeout))

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> NetworkStream:
        seconds = _left(timeout, ConnectTimeout)
        return _DeadlineStream(self._stream.start_tls(ssl_context, server_hostname, seconds))

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)
