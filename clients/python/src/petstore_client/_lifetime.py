"""How long a client or a stream is open, and what has to end when it is closed."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from typing import Optional

from petstore_client._forks import renew_after_fork


class Lifetime:
    """From the start of a client or a stream until it is closed, perhaps by another thread.

    That of a stream ends at the latest with the ``outer`` one, of its client.
    """

    def __init__(self, outer: Optional["Lifetime"] = None) -> None:
        self._outer = outer
        self._is_over = False
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Leave what can be interrupted to the process in which it goes on."""
        self._interrupts: set[Callable[[], object]] = set()
        # Reentrant for the handler of a signal that closes a stream.
        self._lock = threading.RLock()

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self._is_over or (self._outer is not None and self._outer.is_over)

    def end(self) -> None:
        """End, and interrupt what is under way."""
        with self._lock:
            self._is_over = True
            for interrupt in tuple(self._interrupts):
                interrupt()

    @contextmanager
    def interruptible(self, interrupt: Callable[[], object]) -> Generator[None, None, None]:
        """Call ``interrupt`` if it ends before the block does, and never after the block."""
        with nullcontext() if self._outer is None else self._outer.interruptible(interrupt):
            with self._lock:
                self._interrupts.add(interrupt)
                if self._is_over:
                    interrupt()
            try:
                yield
            finally:
                with self._lock:
                    self._interrupts.discard(interrupt)
