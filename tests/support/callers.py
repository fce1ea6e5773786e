"""Threads that call a service until a block ends."""

import threading
from collections.abc import Callable
from typing import Self


class Callers:
    """So many threads that run ``call``; it returns once ``stop`` is set."""

    def __init__(self, call: Callable[[int], None], count: int) -> None:
        self.stop = threading.Event()
        self._threads = [threading.Thread(target=call, args=(number,)) for number in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop.set()
        for thread in self._threads:
            thread.join()
