"""What the processes of a service share to tell their figures."""

import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple


class Place(NamedTuple):
    """A socket that any process may answer at, a folder for figures, and a seat of one process."""

    listener: socket.socket
    folder: Path
    seat: int = 0


@contextmanager
def open_place(listener: socket.socket) -> Iterator[Place]:
    """Make a place, in the process that starts the others."""
    with tempfile.TemporaryDirectory(prefix="petstore-metrics-") as folder:
        yield Place(listener, Path(folder))
