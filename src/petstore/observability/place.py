"""What the processes of a service share to tell their figures."""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """A socket that any process may answer at, a folder for figures, and a seat of one process.

    ``workers`` is how many processes there should be.
    """

    listener: socket.socket
    folder: Path
    workers: int = 1
    seat: int = 0


@contextmanager
def open_place(listener: socket.socket, workers: int = 1) -> Iterator[Place]:
    """Make a place, in the process that starts the others."""
    with tempfile.TemporaryDirectory(prefix="petstore-metrics-") as folder:
        yield Place(listener, Path(folder), workers)
