"""A virtual time for many threads and tasks: it moves on when all of them sleep."""

import asyncio
import heapq
import random
import threading
from collections.abc import Callable, Coroutine
from typing import Any


class VirtualTime:
    """Moves to the end of the next sleep when everybody sleeps, and tells ``moved`` how far.

    ``workers`` is how many threads or tasks there are that may sleep.
    """

    def __init__(self, workers: int, moved: Callable[[float], object]) -> None:
        self.moment = 0.0
        self._workers = workers
        self._moved = moved
        self._lock = threading.Lock()
        self._sleeping: list[tuple[float, int, Callable[[], object]]] = []
        self._count = 0

    def now(self) -> float:
        return self.moment

    def random(self) -> float:
        return random.random()  # noqa: S311 - it spreads retries

    def sleep(self, seconds: float) -> None:
        over = threading.Event()
        self._add(seconds, over.set)
        over.wait()

    async def pause(self, seconds: float) -> None:
        over = asyncio.Event()
        self._add(seconds, over.set)
        await over.wait()

    def leave(self) -> None:
        with self._lock:
            self._workers -= 1
            self._move_if_all_sleep()

    def _add(self, seconds: float, wake: Callable[[], object]) -> None:
        with self._lock:
            self._count += 1
            heapq.heappush(self._sleeping, (self.moment + seconds, self._count, wake))
            self._move_if_all_sleep()

    def _move_if_all_sleep(self) -> None:
        if not self._sleeping or len(self._sleeping) < self._workers:
            return
        moment = self._sleeping[0][0]
        self._moved(moment - self.moment)
        self.moment = moment
        while self._sleeping and self._sleeping[0][0] <= moment:
            heapq.heappop(self._sleeping)[2]()

    def run_threads(self, work: Callable[[int], None]) -> None:
        def run(number: int) -> None:
            try:
                work(number)
            finally:
                self.leave()

        threads = [threading.Thread(target=run, args=(each,)) for each in range(self._workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    async def run_tasks(self, work: Callable[[int], Coroutine[Any, Any, None]]) -> None:
        async def run(number: int) -> None:
            try:
                await work(number)
            finally:
                self.leave()

        await asyncio.gather(*(run(number) for number in range(self._workers)))
