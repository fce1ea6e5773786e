"""Requests that are sent again: the first answer is kept, and nothing is done twice."""

from typing import NamedTuple

from petstore.clock import DAY, Clock
from petstore.databases.contract import Row, Store, Unit
from petstore.databases.idempotency_records import (
    claim,
    complete_record,
    delete_records,
    select_record,
)
from petstore.domain.api_keys import ApiKey
from petstore.errors import IdempotencyKeyInUse, IdempotencyKeyReused

KEPT = DAY
_BATCH = 200


class Attempt(NamedTuple):
    """A request that may be a repetition: whose, its Idempotency-Key, and its digest."""

    key: ApiKey
    idempotency_key: str
    request: bytes


class IdempotencyRecord(NamedTuple):
    """An answer, and whether it was given before."""

    answer: bytes
    is_replay: bool


class SafeRetries:
    """Acts once for each key and Idempotency-Key, and keeps the first answer for 24 hours.

    The answer is written in the transaction of what it answers, so no crash can part the two.
    """

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._under_way: set[tuple[int, str]] = set()
        self.replays = 0

    async def once(self, attempt: Attempt, unit: Unit[bytes]) -> IdempotencyRecord:
        """Return the answer that was kept, or that ``unit`` gives now and which is then kept.

        Raises:
            IdempotencyKeyInUse: the first request is under way.
            IdempotencyKeyReused: the first request was another one.
            Unavailable: the database is out of reach, full or failing; nothing was acknowledged.
            PetstoreError: what ``unit`` raises; nothing is kept then.
        """
        name = (attempt.key.id, attempt.idempotency_key)
        if name in self._under_way:
            msg = "Idempotency-Key: the first request with it is under way; ask again in a moment"
            raise IdempotencyKeyInUse(msg)
        self._under_way.add(name)
        try:
            kept = await self._store.write(self._once(attempt, unit))
        finally:
            self._under_way.remove(name)
        self.replays += kept.is_replay
        return kept

    async def forget(self) -> None:
        """Delete the answers that were kept for long enough.

        Raises:
            Unavailable: the database is out of reach, full or failing.
        """
        until = self._clock() - KEPT
        while len(await self._store.write(_delete(until))) == _BATCH:
            pass

    def _once(self, attempt: Attempt, unit: Unit[bytes]) -> Unit[IdempotencyRecord]:
        name = (attempt.key.id, attempt.idempotency_key)
        now = self._clock()
        if not (yield claim(*name, attempt.request, now, now - KEPT)):
            ((request, answer),) = yield select_record(*name)
            if request != attempt.request:
                msg = "Idempotency-Key: expected a fresh one, it came before with another request"
                raise IdempotencyKeyReused(msg)
            return IdempotencyRecord(answer, is_replay=True)
        answer = yield from unit
        yield complete_record(*name, answer)
        return IdempotencyRecord(answer, is_replay=False)


def _delete(until: int) -> Unit[list[Row]]:
    return (yield delete_records(until, _BATCH))
