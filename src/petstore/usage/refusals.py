"""The requests of each key that a limit refused, by hour and operation."""

from datetime import datetime
from typing import Annotated

from msgspec import Meta, Struct

from petstore.chores import PeriodicTask
from petstore.clock import HOUR, Clock, Milliseconds, utc
from petstore.databases.contract import Statement, Store
from petstore.usage.counts import Counts

_SHOWN_HOURS = 7 * 24
# A program that calls everything has a row of each operation in each hour.
_MAX_SHOWN = 1000


class RefusedRequests(Struct, frozen=True):
    """The requests to one operation that a limit refused within one hour."""

    hour: Annotated[datetime, Meta(tz=True, description="When the hour began.")]
    operation: (
        Annotated[
            str, Meta(description="The `operationId`; null if the request was for no operation.")
        ]
        | None
    )
    requests: Annotated[int, Meta(description="The requests that got 429.")]


class Refusals(Counts):
    """Counts refused requests, by the id of a key, the number of an hour, and an operation.

    The operation is empty where a request was for none.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, "refused_requests", "requests")
        self._clock = clock
        self.chore = PeriodicTask(self.flush, 5, "refused requests not saved", at_stop=True)

    def count(self, key_id: int, now: Milliseconds, operation: str) -> None:
        """Count one request that got 429."""
        self.add((key_id, now // HOUR, operation))

    async def of_key(self, key_id: int) -> list[RefusedRequests]:
        """Return what was refused in the last 7 days: the newest hour first, then by operation.

        Raises:
            Unavailable: the database is unreachable.
        """
        first = self._clock() // HOUR - _SHOWN_HOURS + 1
        select = Statement(
            "SELECT hour, operation, requests FROM refused_requests"
            " WHERE key_id = ?1 AND hour >= ?2 ORDER BY hour DESC, operation DESC LIMIT ?3",
            (key_id, first, _MAX_SHOWN),
            name="select_refused_requests",
        )
        rows, unflushed = await self.read(key_id, select)
        requests = {(-hour, operation): count for hour, operation, count in rows}
        for (_, hour, operation), tally in unflushed:
            if hour >= first:
                name = (-hour, operation)
                requests[name] = requests.get(name, 0) + tally.count
        return [
            RefusedRequests(utc(-hour * HOUR), operation or None, count)
            for (hour, operation), count in sorted(requests.items())[:_MAX_SHOWN]
        ]
