"""What the processes of a service share to tell their figures."""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

_BACKLOG = 128


class Place(NamedTuple):
    """A socket that any process may answer at, and a folder where each puts its figures."""

    listener: socket.socket
    folder: str


@contextmanager
def open_place(host: str, port: int) -> Iterator[Place]:
    """Make a place, in the process that starts the others.

    Raises:
        OSError: the address cannot be listened on.
    """
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with (
        tempfile.TemporaryDirectory(prefix="petstore-metrics-") as folder,
        socket.create_server(address, family=family, backlog=_BACKLOG) as listener,
    ):
        yield Place(listener, folder)
