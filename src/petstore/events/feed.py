"""Long polls of the feed: each ends as soon as there is an event for it."""

import asyncio
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias

from msgspec import Struct

from petstore.clock import SECOND, Clock
from petstore.databases.contract import Reader
from petstore.errors import Unavailable
from petstore.events.store import oldest_unpublished, recent_events

_WOKEN_AT_ONCE = 8

_Newest: TypeAlias = dict[tuple[str, int | None], int]
"""The sequence of the newest event of each type and key."""


class Client(Protocol):
    """A waiting client; ``on_lost`` is called when it disconnects."""

    on_lost: Callable[[], object] | None


class _Waiter(Struct, eq=False):
    """Waits for an event after ``after`` of one of ``types``, which the key ``key_id`` may read.

    It is an event of the ``resource``, or of any if that is empty.
    """

    after: int
    types: Collection[str]
    key_id: int
    resource: str
    woken: asyncio.Future[bool]


class Feed:
    """Watches the feed while somebody waits, with one query each ``seconds`` for all of them."""

    def __init__(self, store: Reader, seconds: float) -> None:
        self._store = store
        self._seconds = seconds
        self._has_changed_callers = False
        self._waiters: set[_Waiter] = set()
        self._watching: asyncio.Task[None] | None = None
        self._seen = 0
        self._is_released = False

    @property
    def waiting(self) -> int:
        """How many wait now."""
        return len(self._waiters)

    async def wait(
        self,
        after: int,
        types: Collection[str],
        key_id: int,
        seconds: float,
        client: Client | None = None,
        resource: str = "",
    ) -> bool:
        """Wait for an event after the place ``after``; return whether there was one in time.

        Only an event of the ``resource`` counts, if one is given. The wait also ends if the
        ``client`` leaves.
        """
        if self._is_released:
            return False
        woken = asyncio.get_running_loop().create_future()
        waiter = _Waiter(after, types, key_id, resource, woken)
        self._waiters.add(waiter)
        if self._watching is None:
            self._seen = after
            self._watching = asyncio.create_task(self._watch())
        self._seen = min(self._seen, after)
        if client is not None:
            client.on_lost = partial(_wake, waiter, is_event=False)
        try:
            async with asyncio.timeout(seconds):
                return await waiter.woken
        except TimeoutError:
            return False
        finally:
            self._waiters.discard(waiter)
            if client is not None:
                client.on_lost = None

    def look_at_callers(self) -> None:
        """Let all who wait look whether they may still read: a key or a person has changed.

        To them it is as if there may be an event. If there is none, they wait on.
        """
        self._has_changed_callers = True

    def release(self) -> None:
        """End every wait, now and from now on: this process stops."""
        self._is_released = True
        for waiter in self._waiters:
            _wake(waiter, is_event=False)

    async def close(self) -> None:
        """End every wait, and stop watching."""
        self.release()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        try:
            while self._waiters:
                with suppress(Unavailable):  # the next look may work; else they wait in vain
                    await self._look()
                await asyncio.sleep(self._seconds)
        finally:
            self._watching = None

    async def _look(self) -> None:
        seen = self._seen
        if self._has_changed_callers:
            self._has_changed_callers = False
            await self._wake_all(list(self._waiters))
        rows = await recent_events(self._store, seen)
        if not rows:
            return
        if self._seen == seen:  # else somebody has come meanwhile who read less
            self._seen = rows[-1][0]
        newest: dict[str, _Newest] = {"": {}}
        for sequence, kind, key_id, resource in rows:
            newest[""][kind, key_id] = sequence
            newest.setdefault(resource, {})[kind, key_id] = sequence
        concerned = [
            waiter
            for waiter in self._waiters
            if waiter.resource in newest and _concerns(waiter, newest[waiter.resource])
        ]
        await self._wake_all(concerned)

    async def _wake_all(self, waiters: Sequence[_Waiter]) -> None:
        for start in range(0, len(waiters), _WOKEN_AT_ONCE):
            for waiter in waiters[start : start + _WOKEN_AT_ONCE]:
                _wake(waiter, is_event=True)
            await asyncio.sleep(0)  # other requests get their turn


def _concerns(waiter: _Waiter, newest: _Newest) -> bool:
    """Return whether a waiter wants one of the ``newest`` events."""
    return any(
        sequence > waiter.after and kind in waiter.types and key_id in (None, waiter.key_id)
        for (kind, key_id), sequence in newest.items()
    )


class FeedLag:
    """How many ``seconds`` the oldest committed event has waited for its place in the feed.

    Only on PostgreSQL events wait, and ``refresh`` has something to read.
    """

    def __init__(self, store: Reader, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self.seconds = 0.0

    async def refresh(self) -> None:
        """Look once.

        Raises:
            Unavailable: the database is unreachable or failing.
        """
        recorded_at = await oldest_unpublished(self._store)
        waited = 0 if recorded_at is None else self._clock() - recorded_at
        self.seconds = max(0, waited) / SECOND


def _wake(waiter: _Waiter, *, is_event: bool) -> None:
    if not waiter.woken.done():
        waiter.woken.set_result(is_event)
