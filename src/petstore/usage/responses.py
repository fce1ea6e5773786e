"""The responses to each key by day and status."""

from typing import NamedTuple

from petstore.chores import PeriodicTask
from petstore.clock import Clock
from petstore.databases.contract import Statement, Store
from petstore.usage.counts import Counts, first_day


class DayOfStatus(NamedTuple):
    """How many requests of a key got a status on a UTC day, which is a number of days."""

    day: int
    status: int
    requests: int


class Responses(Counts):
    """Counts responses, by the id of a key, the number of a UTC day, and a status."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__(store, "responses", "requests")
        self._clock = clock
        self.chore = PeriodicTask(self.flush, 5, "responses by status not saved", at_stop=True)

    async def of_key(self, key_id: int) -> list[DayOfStatus]:
        """Return the responses of the last 30 days, by day.

        Raises:
            Unavailable: the database is unreachable.
        """
        first = first_day(self._clock())
        select = Statement(
            "SELECT day, status, requests FROM responses WHERE key_id = ?1 AND day >= ?2",
            (key_id, first),
            name="select_responses",
        )
        rows, unflushed = await self.read(key_id, select)
        requests = {(day, status): count for day, status, count in rows}
        for (_, day, status), tally in unflushed:
            if day >= first:
                requests[day, status] = requests.get((day, status), 0) + tally.count
        return [DayOfStatus(*name, count) for name, count in sorted(requests.items())]
