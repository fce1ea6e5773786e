"""Ctrl-C at a moment that a test chooses."""

from collections.abc import Iterator
from contextlib import contextmanager

import apsw


@contextmanager
def interrupted_at_once() -> Iterator[None]:
    """Interrupt this process, as Ctrl-C does, where it opens a SQLite file."""

    def interrupt(_: apsw.Connection) -> None:
        raise KeyboardInterrupt

    apsw.connection_hooks.append(interrupt)
    try:
        yield
    finally:
        apsw.connection_hooks.remove(interrupt)
