"""Reservations that lapse: on time, whoever asks and whether or not the service was up."""

import asyncio
import logging

from petstore.clock import Clock, Milliseconds
from petstore.databases.contract import Store
from petstore.databases.orders import SELECT_NEXT_LAPSE
from petstore.errors import Unavailable
from petstore.store.lapses import free_lapsed

_LOG = logging.getLogger(__name__)
_PATIENCE = 0.25
_TOO_LATE = "the database did not take it soon enough"


class Reservations:
    """Frees the animals of placed orders whose time is over, before anybody is told of them.

    It remembers when the next one lapses. No reservation is shorter than a minute and ``refresh``
    is called each second, so those that other processes make are known in time too.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._next: Milliseconds | None = None
        self._settling = asyncio.Lock()
        self.lapsed = 0

    def note(self, until: Milliseconds | None) -> None:
        """Take notice of a reservation made here, which lapses at ``until``."""
        if until is not None and (self._next is None or until < self._next):
            self._next = until

    def are_due(self) -> bool:
        """Tell whether a reservation has lapsed and its animal is not yet free."""
        return self._next is not None and self._clock() >= self._next

    async def settle(self) -> None:
        """Free what is due. If the database does not take it soon, reading goes on without."""
        try:
            # Whoever asks is to be answered in time whatever becomes of this.
            async with asyncio.timeout(_PATIENCE), self._settling:
                if self.are_due():
                    await self._free()
        except (Unavailable, TimeoutError) as error:
            # From now on ``refresh`` alone tries, and nobody waits for it.
            self._next = None
            _LOG.warning("lapsed reservations not freed: %s", str(error) or _TOO_LATE)

    async def refresh(self) -> None:
        """Look up when the next reservation lapses, and free those that have.

        Raises:
            Unavailable: the database is out of reach, full or failing.
        """
        async with self._settling:
            try:
                await self._free()
            except Unavailable:
                self._next = None  # it is tried again, and nobody waits for that
                raise

    async def _free(self) -> None:
        due = await self._read_next()
        while due is not None and self._clock() >= due:
            self.lapsed += await self._store.write(free_lapsed(self._clock()))
            due = await self._read_next()
        self._next = due

    async def _read_next(self) -> Milliseconds | None:
        rows = await self._store.read(SELECT_NEXT_LAPSE)
        return rows[0][0] if rows else None
