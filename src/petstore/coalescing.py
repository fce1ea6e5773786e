"""Concurrent calls that share work: one call made for many, and many calls made as one batch."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")
R = TypeVar("R")


class SingleFlight(Generic[K, R]):
    """Calls with the same key get the result of the one in progress."""

    def __init__(self) -> None:
        self._calls: dict[K, asyncio.Task[R]] = {}

    def __contains__(self, key: K) -> bool:
        return key in self._calls

    async def call(self, key: K, begin: Callable[[], Coroutine[Any, Any, R]]) -> R:
        call = self._calls.get(key)
        if call is None:
            call = self._calls[key] = asyncio.create_task(begin())
            call.add_done_callback(partial(self._end, key))
        try:
            return await asyncio.shield(call)
        finally:
            del call  # or it would be in the traceback of its error

    def _end(self, key: K, call: asyncio.Task[R]) -> None:
        del self._calls[key]
        if not call.cancelled():
            call.exception()  # retrieved, even if no caller still waits for it


class Batcher(Generic[T, R]):
    """Calls that are made at once are in one batch, up to ``max_size`` of them.

    ``run`` makes the calls with these arguments, and returns the result of each: an exception is
    raised to its caller. ``at_once`` batches run at a time; while so many run, calls wait for the
    end of one. If ``run`` itself raises an exception, its calls fail with it. With one batch at a
    time so does every waiting call: the next batch would fail as late. With a ``timeout`` in
    seconds, no call takes longer: a batch fails that late after its first call, with
    ``TimeoutError``. A caller that is cancelled does not cancel its call.
    """

    def __init__(
        self,
        run: Callable[[Sequence[T]], Awaitable[Sequence[R | Exception]]],
        max_size: int,
        at_once: int = 1,
        timeout: float | None = None,
    ) -> None:
        self._run = run
        self._max_size = max_size
        self._at_once = at_once
        self._timeout = timeout
        self._waiting: list[tuple[T, asyncio.Future[R], float]] = []  # with the time by the loop
        self._running: set[asyncio.Task[None] | None] = set()
        self._is_collecting = False

    def call(self, argument: T) -> asyncio.Future[R]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[R] = loop.create_future()
        self._waiting.append((argument, done, loop.time()))
        if not self._is_collecting and len(self._running) < self._at_once:
            self._is_collecting = True
            self._running.add(loop.create_task(self._run_all()))
        return done

    def cancel(self) -> None:
        for running in filter(None, self._running):
            running.cancel()

    async def _run_all(self) -> None:
        try:
            while self._is_collecting:
                await asyncio.sleep(0)  # calls in the loop's queue join
                batch = self._waiting[: self._max_size]
                del self._waiting[: self._max_size]
                self._is_collecting = False
                await self._settle(batch)
                if self._is_collecting:  # another one
                    break
                self._is_collecting = bool(self._waiting)
        finally:
            self._running.discard(asyncio.current_task())

    async def _settle(self, batch: list[tuple[T, asyncio.Future[R], float]]) -> None:
        ends_at = self._timeout and batch[0][2] + self._timeout
        results: Sequence[R | Exception]
        try:
            async with asyncio.timeout_at(ends_at):
                results = await self._run([argument for argument, _, _ in batch])
        except Exception as error:  # noqa: BLE001 - it concerns the callers
            if self._at_once == 1:
                batch += self._waiting
                self._waiting.clear()
            results = [error] * len(batch)
        for (_, done, _), result in zip(batch, results, strict=True):
            settle(done, result)


def settle(done: asyncio.Future[R], result: R | BaseException) -> None:
    """Give a future its result, or the exception to raise, unless it has one or was cancelled."""
    if done.done():
        return
    if isinstance(result, BaseException):
        done.set_exception(result)
    else:
        done.set_result(result)
