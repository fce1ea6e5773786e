"""Counts in the memory of a process, saved in batches that the database adds once each."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar
from uuid import uuid4

from petstore.clock import Clock, Milliseconds
from petstore.databases.contract import Statement, Store, Unit
from petstore.store.retention import prune_by_age

N = TypeVar("N", bound=tuple[Any, ...])
C = TypeVar("C")

SAVED_BATCH = "(SELECT batch FROM deprecated_call_saves WHERE process = {})"
"""The SQL of the number that ``CountedBatches.unsaved`` takes; its parameter is the process."""

_ROWS_AT_ONCE = 50


class CountedBatches(Generic[N, C]):
    """What was ``counted`` by name since the last save.

    ``save`` adds it to the rows that all processes share; ``add`` returns the statement for some of
    the names. The outcome of a save that fails is unknown: a commit may succeed after its timeout.
    So a batch is saved under its number, again and again until one save succeeds, and the database
    adds each number once.
    """

    def __init__(
        self, store: Store, clock: Clock, add: Callable[[Sequence[tuple[N, C]]], Statement]
    ) -> None:
        self._store = store
        self._clock = clock
        self._add = add
        self.process = uuid4().hex
        self._batch = 0
        self.counted: dict[N, C] = {}
        self._saving: dict[N, C] = {}

    async def save(self) -> None:
        """Save everything that is not saved yet.

        Raises:
            Unavailable: the counts could not be saved; the next call saves them.
        """
        await self._save_batch()  # the one whose save failed
        self._saving, self.counted = self.counted, {}
        self._batch += 1
        await self._save_batch()

    def unsaved(self) -> Callable[[int | None], Iterator[tuple[N, C]]]:
        """Return what yields the counts beyond those that a query returns.

        Call it before the query: a save may end meanwhile. What it returns takes the number of
        the last batch that the database had added (``SAVED_BATCH``), which the query returns
        beside its rows, and may be called while more is counted.
        """
        batches = ((self._batch, self._saving), (self._batch + 1, self.counted))

        def beyond(saved: int | None) -> Iterator[tuple[N, C]]:
            for number, counts in batches:
                if number > (saved or 0):
                    yield from counts.items()

        return beyond

    async def _save_batch(self) -> None:
        if self._saving:
            await self._store.write(self._saved(self._saving, self._clock()))
            self._saving = {}

    def _saved(self, counts: Mapping[N, C], now: Milliseconds) -> Unit[None]:
        is_new = yield Statement(
            "INSERT INTO deprecated_call_saves (process, batch, saved_at) VALUES (?1, ?2, ?3)"
            " ON CONFLICT (process) DO UPDATE"
            " SET batch = excluded.batch, saved_at = excluded.saved_at"
            " WHERE deprecated_call_saves.batch < excluded.batch RETURNING batch",
            (self.process, self._batch, now),
            name="insert_saved_batch",
            affects_pages=False,
        )
        if is_new:
            # In order, so that processes that save at once do not deadlock.
            rows = sorted(counts.items(), key=lambda each: each[0])
            for start in range(0, len(rows), _ROWS_AT_ONCE):
                yield self._add(rows[start : start + _ROWS_AT_ONCE])


def prune_saved_batches(before: Milliseconds) -> Unit[int]:
    """Delete a batch of the numbers that processes saved before a moment; return how many."""
    return prune_by_age("deprecated_call_saves", "process", "saved_at", before)
