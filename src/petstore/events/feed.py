"""Long polls of the feed: each ends as soon as there is an event for it."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Protocol, TypeAlias

from msgspec import Struct

from petstore.databases.contract import Reader
from petstore.errors import Unavailable
from petstore.events.search import EventFilter
from petstore.events.store import recent_events

_WOKEN_AT_ONCE = 8

_Newest: TypeAlias = dict[tuple[str, int | None], int]
"""The sequence of the newest event of each type and key."""


class Client(Protocol):
    on_lost: Callable[[], object] | None


class _Waiter(Struct, eq=False):
    after: int
    wanted: EventFilter
    woken: asyncio.Future[bool]


class Feed:
    """Watches the feed while a client waits, with one query each ``seconds`` for all of them."""

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
        return len(self._waiters)

    async def wait(
        self, after: int, wanted: EventFilter, seconds: float, client: Client | None = None
    ) -> bool:
        """Wait for a wanted event after the position ``after``; return whether there may be one."""
        if self._is_released:
            return False
        woken = asyncio.get_running_loop().create_future()
        waiter = _Waiter(after, wanted, woken)
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

    def recheck_callers(self) -> None:
        """Make all waiting clients check their rights again: a key or a person has changed."""
        self._has_changed_callers = True

    def release(self) -> None:
        """End every wait, now and from now on: this process stops."""
        self._is_released = True
        for waiter in self._waiters:
            _wake(waiter, is_event=False)

    async def close(self) -> None:
        self.release()
        if self._watching is not None:
            self._watching.cancel()
            await asyncio.gather(self._watching, return_exceptions=True)

    async def _watch(self) -> None:
        try:
            while self._waiters:
                with suppress(Unavailable):  # the next poll may work
                    await self._poll()
                await asyncio.sleep(self._seconds)
        finally:
            self._watching = None

    async def _poll(self) -> None:
        seen = self._seen
        if self._has_changed_callers:
            self._has_changed_callers = False
            await self._wake_all(list(self._waiters))
        rows = await recent_events(self._store, seen)
        if not rows:
            return
        if self._seen == seen:  # else a client has come meanwhile who read less
            self._seen = rows[-1][0]
        newest: dict[str, _Newest] = {"": {}}
        for sequence, kind, key_id, resource, actor in rows:
            for subject in ("", resource, _by(actor)):
                newest.setdefault(subject, {})[kind, key_id] = sequence
        served = []
        for waiter in self._waiters:
            wanted = waiter.wanted
            found = newest.get(wanted.resource or _by(wanted.actor), {})
            if any(
                sequence > waiter.after
                and kind in wanted.types
                and key_id in (None, *wanted.key_ids)
                for (kind, key_id), sequence in found.items()
            ):
                served.append(waiter)
        await self._wake_all(served)

    async def _wake_all(self, waiters: Sequence[_Waiter]) -> None:
        for start in range(0, len(waiters), _WOKEN_AT_ONCE):
            for waiter in waiters[start : start + _WOKEN_AT_ONCE]:
                _wake(waiter, is_event=True)
            await asyncio.sleep(0)  # other requests get their turn


def _by(actor: str) -> str:
    return f"by {actor}" if actor else ""


def _wake(waiter: _Waiter, *, is_event: bool) -> None:
    if not waiter.woken.done():
        waiter.woken.set_result(is_event)
