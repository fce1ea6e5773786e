"""Responses to each key by day and status: counted in memory, saved in batches."""

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

from petstore.clock import DAY, Clock, Milliseconds
from petstore.databases.contract import Statement, Store, Unit, Value, placeholders
from petstore.store.counted_batches import SAVED_BATCH, CountedBatches
from petstore.store.deprecated_calls import first_day
from petstore.store.retention import prune_by_age

_SELECT = (
    f"SELECT day, status, requests, {SAVED_BATCH.format('?3')}"  # noqa: S608 - only names
    " FROM responses WHERE key_id = ?1 AND day >= ?2"
)

_Name: TypeAlias = tuple[int, int, int]
"""The id of a key, the number of a day and a status."""


class DayOfStatus(NamedTuple):
    """How many requests of a key got a status on a UTC day, which is a number of days."""

    day: int
    status: int
    requests: int


class Responses:
    """Counts the responses to each key by UTC day and status."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._batches: CountedBatches[_Name, int] = CountedBatches(store, clock, _add)

    def count(self, key_id: int, day: int, status: int) -> None:
        """Count one response. Every request with a key does."""
        name, counted = (key_id, day, status), self._batches.counted
        counted[name] = counted.get(name, 0) + 1

    async def save(self) -> None:
        """Save everything that is not saved yet.

        Raises:
            Unavailable: the counts could not be saved; the next call saves them.
        """
        await self._batches.save()

    async def of_key(self, key_id: int) -> list[DayOfStatus]:
        """Return the responses of the last 30 days, unsaved ones of this process too, by day.

        Raises:
            Unavailable: the database is unreachable.
        """
        first = first_day(self._clock())
        unsaved = self._batches.unsaved()
        parameters = (key_id, first, self._batches.process)
        rows = await self._store.read(Statement(_SELECT, parameters, name="select_responses"))
        requests = {(day, status): count for day, status, count, _ in rows}
        for (holder, day, status), count in unsaved(rows[0][-1] if rows else 0):
            if holder == key_id and day >= first:
                requests[day, status] = requests.get((day, status), 0) + count
        return [DayOfStatus(*name, count) for name, count in sorted(requests.items())]


def prune_responses(before: Milliseconds) -> Unit[int]:
    """Delete a batch of the counts of days that ended before a moment; return how many."""
    return prune_by_age("responses", "key_id, day, status", "day", before // DAY)


def _add(counts: Sequence[tuple[_Name, int]]) -> Statement:
    parameters: list[Value] = list(chain.from_iterable((*name, count) for name, count in counts))
    return Statement(
        "INSERT INTO responses (key_id, day, status, requests)"  # noqa: S608 - only names
        f" VALUES {placeholders(4, len(counts))}"
        " ON CONFLICT (key_id, day, status)"
        " DO UPDATE SET requests = responses.requests + excluded.requests",
        tuple(parameters),
        name="insert_responses",
        affects_pages=False,
    )
