"""Reservations that lapse: a placed order that is not approved in time frees its pet."""

import asyncio
import logging

from petstore.chores import PeriodicTask
from petstore.clock import Clock, Milliseconds
from petstore.databases.contract import Statement, Store
from petstore.errors import Unavailable
from petstore.orders.store import free_lapsed

_LOG = logging.getLogger(__name__)
_TIMEOUT = 0.25


class Reservations:
    """Frees the pets of lapsed reservations before any response shows them as reserved.

    It remembers when the next reservation lapses. A reservation lasts a minute or more, and
    ``refresh`` runs each second, so reservations by other processes are known in time too.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next: Milliseconds | None = None
        self._noted: Milliseconds | None = None  # the earliest since the database was last read
        self._settling = asyncio.Lock()
        self.chore = PeriodicTask(
            self.refresh, 1, "lapsed reservations were not released", at_start=True
        )

    def note(self, until: Milliseconds) -> None:
        self._next = _earlier(until, self._next)
        self._noted = _earlier(until, self._noted)

    def are_due(self) -> bool:
        """Return whether a reservation has lapsed and its pet is not yet free."""
        return self._next is not None and self._clock() >= self._next

    async def settle(self) -> None:
        """Release the pets that are due. If the database is slow or unreachable, do nothing."""
        try:
            # The caller gets its response in time, whatever happens here.
            async with asyncio.timeout(_TIMEOUT), self._settling:
                if self.are_due():
                    await self._free()
        except (Unavailable, TimeoutError) as error:
            # From now on only ``refresh`` tries, and no request waits for it.
            self._next = None
            reason = str(error) or "the database did not take it soon enough"
            _LOG.warning("lapsed reservations were not released: %s", reason)

    async def refresh(self) -> None:
        """Find when the next reservation lapses, and release the pets of lapsed ones."""
        async with self._settling:
            try:
                await self._free()
            except Unavailable:
                self._next = None  # the next refresh tries again; no request waits for it
                raise

    async def _free(self) -> None:
        due = await self._read_next()
        while due is not None and self._clock() >= due:
            await self._store.write(free_lapsed(self._clock()))
            due = await self._read_next()
        # The read may have begun before a reservation that was made during it.
        self._next = due if self._noted is None else _earlier(self._noted, due)

    async def _read_next(self) -> Milliseconds | None:
        select = Statement(
            "SELECT reserved_until FROM orders WHERE reserved_until IS NOT NULL"
            " ORDER BY reserved_until LIMIT 1",
            name="select_next_lapse",
        )
        self._noted = None
        rows = await self._store.read(select)
        return rows[0][0] if rows else None


def _earlier(one: Milliseconds, other: Milliseconds | None) -> Milliseconds:
    return one if other is None else min(one, other)
